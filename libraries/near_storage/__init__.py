"""Read Parquet near its storage: a catalog, storage nodes that skip row groups and filter rows, and a client.

    from libraries import near_storage
    with near_storage.connect("grpc+tls://catalog:7000", token=...) as client:
        client.query("SELECT name FROM people WHERE born < 1900")

The package imports no other package of the project except `libraries.filters` and `libraries.durable`. Each name is
imported on first use, because the child process that reads untrusted footers imports this package too and must start
fast. "Weigand 2025" in docstrings is the thesis that docs/near-storage.md names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libraries.near_storage.client.connection import Client, connect
    from libraries.near_storage.query import Query
    from libraries.near_storage.serving.security import hash_token, new_secret, new_token
    from libraries.near_storage.serving.server_process import serve_catalog, serve_node

__all__ = ["Client", "Query", "connect", "hash_token", "new_secret", "new_token", "serve_catalog", "serve_node"]

_HOMES = {
    "Client": "client.connection",
    "connect": "client.connection",
    "Query": "query",
    "serve_catalog": "serving.server_process",
    "serve_node": "serving.server_process",
    "hash_token": "serving.security",
    "new_secret": "serving.security",
    "new_token": "serving.security",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
