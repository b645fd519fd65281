"""Read a table with the workers of a cluster. Each endpoint names one partition, and one worker reads it.

    import dask.dataframe as dd
    frame = dd.from_map(read_endpoint, endpoints(uri, "table", where=pc.field("a") > 5), columns=["a", "b"])

An endpoint is for one version of the table. It holds no ticket, because tickets expire and tasks may wait for hours. A
worker gets a ticket from the catalog when it starts a task. Any engine works: `dask.dataframe.from_map`, a Ray task or
a thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from libraries.filters.tree import Predicate
from libraries.near_storage.client.connection import Client, connect
from libraries.near_storage.client.executor import Options
from libraries.near_storage.errors import RequestError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Query

if TYPE_CHECKING:
    import pandas as pd

TOKEN_VARIABLE = "NEAR_STORAGE_TOKEN"
"""Environment variable with the token on workers. The token is not part of the tasks."""

_clients: dict[tuple[str, str, bytes | None], Client] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Endpoint:
    """One partition of one table version, with columns and filter. Plain data that can be sent anywhere."""

    uri: str
    query: bytes
    version: int
    position: int
    tls_roots: bytes | None = None


def endpoints(
    uri: str,
    table: str,
    columns: Sequence[str] | None = None,
    where: Predicate | pc.Expression | None = None,
    token: str | None = None,
    tls_roots: bytes | None = None,
) -> list[Endpoint]:
    """Return endpoints for the partitions that may have rows for which `where` is true, in stored order. If there are
    none, return an endpoint for the first partition.

    `columns` is the default for tasks that name no columns. If nodes do not support a part of `where`, RequestError is
    raised; apply that part in the tasks. `token` defaults to the environment variable NEAR_STORAGE_TOKEN, which must be
    set on workers in any case. Raises the same errors as `Client.answer`.
    """
    client = _client(uri, token, tls_roots)
    if isinstance(where, pc.Expression):
        translated = wire.translated(where, client.schema(table))
        if not translated.complete:
            raise RequestError(
                f"the filter {str(where)[:200]} has parts that nodes do not support: remove these parts, and apply "
                "them in the tasks"
            )
        where = translated.predicate
    query = Query(table, None if columns is None else tuple(columns), where)
    asked = client.executor.ask(query, Options())
    # An empty list would give the cluster no columns; the first partition then returns no rows.
    positions = sorted(piece.position for source in asked.sources for piece in source.share.pieces) or [0]
    encoded = wire.encode_query(query)
    return [Endpoint(uri, encoded, asked.plan.version, position, tls_roots) for position in positions]


def read_endpoint(endpoint: Endpoint, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the matching rows of one partition as a pandas frame. Raises StaleError if the version is no longer
    served."""
    return read_arrow(endpoint, columns).to_pandas()


def read_arrow(endpoint: Endpoint, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the matching rows of one partition as an Arrow table. Raises StaleError if the version is no longer
    served."""
    query = wire.decode_query(endpoint.query)
    if columns is not None:
        query = Query(query.table, tuple(columns), query.where)
    client = _client(endpoint.uri, None, endpoint.tls_roots)
    options = Options(version=endpoint.version, positions=(endpoint.position,))
    return client.executor.answer(query, options).table


def _client(uri: str, token: str | None, tls_roots: bytes | None) -> Client:
    token = token or os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise RequestError(f"no token: set the environment variable {TOKEN_VARIABLE}, here and on all workers")
    key = uri, token, tls_roots
    with _lock:
        if key not in _clients:
            _clients[key] = connect(uri, token, tls_roots)
        return _clients[key]
