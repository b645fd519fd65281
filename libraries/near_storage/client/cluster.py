"""A table for the workers of a cluster: one endpoint a partition, each read wherever the task runs.

    import dask.dataframe as dd
    frame = dd.from_map(read_endpoint, endpoints(uri, "table", where=pc.field("a") > 5), columns=["a", "b"])

An endpoint names a partition of one version, not a ticket: tasks may wait for hours, and a worker asks the catalog when
it begins. It knows no engine of clusters; `dask.dataframe.from_map`, a Ray task or a thread will do.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from libraries.near_storage.client.connection import Client, connect
from libraries.near_storage.client.executor import Options
from libraries.near_storage.errors import RequestError
from libraries.near_storage.predicates import wire
from libraries.near_storage.predicates.expressions import translate
from libraries.near_storage.predicates.tree import Predicate
from libraries.near_storage.query import Query

if TYPE_CHECKING:
    import pandas as pd

TOKEN_VARIABLE = "NEAR_STORAGE_TOKEN"
"""Where workers find the token: it does not travel with the tasks."""

_clients: dict[tuple[str, str, bytes | None], Client] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Endpoint:
    """One partition of one version of a table, as columns and a filter see it. Data alone: it can be sent anywhere."""

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
    """The partitions that may have rows for which `where` is true, in the table's order; the first, if none may.

    `columns` are those that tasks get if they ask for none. A pyarrow expression must be one that the nodes understand
    as a whole, else RequestError: filter the rest in the tasks. The token is that of the environment variable
    NEAR_STORAGE_TOKEN if none is given; workers need the variable. Other errors are those of `Client.answer`.
    """
    client = _client(uri, token, tls_roots)
    if isinstance(where, pc.Expression):
        translated = translate(where, client.schema(table))
        if not translated.complete:
            raise RequestError(
                f"the filter {str(where)[:200]} has parts that only the client can apply: leave them out here, and "
                "filter in the tasks"
            )
        where = translated.predicate
    query = Query(table, None if columns is None else tuple(columns), where)
    asked = client.executor.ask(query, Options())
    # Without any, a cluster would not know the columns: the first partition then gives no rows.
    positions = sorted(piece.position for source in asked.sources for piece in source.share.pieces) or [0]
    encoded = wire.encode_query(query)
    return [Endpoint(uri, encoded, asked.plan.version, position, tls_roots) for position in positions]


def read_endpoint(endpoint: Endpoint, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of one partition that match, as a pandas frame. StaleError if the version is gone: begin anew."""
    return read_arrow(endpoint, columns).to_pandas()


def read_arrow(endpoint: Endpoint, columns: Sequence[str] | None = None) -> pa.Table:
    """The same as an Arrow table."""
    query = wire.decode_query(endpoint.query)
    if columns is not None:
        query = Query(query.table, tuple(columns), query.where)
    client = _client(endpoint.uri, None, endpoint.tls_roots)
    options = Options(version=endpoint.version, positions=(endpoint.position,))
    return client.executor.answer(query, options).table


def _client(uri: str, token: str | None, tls_roots: bytes | None) -> Client:
    """The process's connection to this catalog."""
    token = token or os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise RequestError(f"no token: set the environment variable {TOKEN_VARIABLE} where the tasks run")
    key = uri, token, tls_roots
    with _lock:
        if key not in _clients:
            _clients[key] = connect(uri, token, tls_roots)
        return _clients[key]
