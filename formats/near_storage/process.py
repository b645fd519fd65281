"""A service of near storage over a stored copy, as a process: `python -m formats.near_storage.process catalog|node`.

It prints the port at which it listens, as a line of JSON, when it answers. The token of the environment is that of the
client, and what the services show each other follows from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from adapters.services import TOKEN
from formats.near_storage import CATALOG, NODE
from libraries.near_storage.serving import running, security


def main() -> None:
    """`catalog LOCATION` and `node LOCATION CATALOG ADVERTISED`; an address is 'host:port', ADVERTISED may be empty."""
    what, location = sys.argv[1], Path(sys.argv[2])
    token = os.environ[TOKEN]
    secret = hashlib.sha256(token.encode()).hexdigest().encode()
    if what == "catalog":
        running.serve_catalog(location / CATALOG, secret, [security.hash_token(token)], replicas=1, ready=_say)
        return
    catalog, advertised = f"grpc://{sys.argv[3]}", sys.argv[4]
    running.serve_node(
        location / NODE, secret, NODE, catalog, advertise=f"grpc://{advertised}" if advertised else None, ready=_say
    )


def _say(uri: str) -> None:
    sys.stdout.write(json.dumps({"port": int(uri.rpartition(":")[2])}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
