"""Run a service of near storage: `python -m formats.parquet.near_storage_process catalog|node FOLDER`.

When the service is ready, it prints its port as a line of JSON. An environment variable has the client's token. The
services derive from this token the secret that catalog and node use between themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from adapters.services import TOKEN
from libraries.near_storage.serving import security, server_process


def main() -> None:
    """Run the service that the command line requests: `catalog FOLDER` or `node FOLDER CATALOG ADVERTISED`.

    A node has the name of its folder. CATALOG is the address 'host:port' of the catalog. ADVERTISED is the address
    under which clients reach the node. It is empty if clients use the address on which the node listens.
    """
    what, folder = sys.argv[1], Path(sys.argv[2])
    token = os.environ[TOKEN]
    secret = hashlib.sha256(token.encode()).hexdigest().encode()
    if what == "catalog":
        server_process.serve_catalog(folder, secret, [security.hash_token(token)], replicas=1, ready=_say)
        return
    catalog, advertised = f"grpc://{sys.argv[3]}", sys.argv[4]
    advertise = f"grpc://{advertised}" if advertised else None
    server_process.serve_node(folder, secret, folder.name, catalog, advertise=advertise, ready=_say)


def _say(uri: str) -> None:
    sys.stdout.write(json.dumps({"port": int(uri.rpartition(":")[2])}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
