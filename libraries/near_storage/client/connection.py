"""The user's connection to a catalog, to upload, query and maintain tables.

The catalog returns addresses of nodes and tickets. The client sends the tickets to the nodes, which return rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

import msgspec
import pyarrow as pa

from libraries.near_storage.client import table_upload
from libraries.near_storage.client.backoff import Patience
from libraries.near_storage.client.dataset import NearStorageDataset, dataset
from libraries.near_storage.client.executor import Answer, Executor, Options
from libraries.near_storage.client.explanation import Explanation, explanation
from libraries.near_storage.client.sources import TableSource
from libraries.near_storage.client.table_upload import CatalogTarget, Progress
from libraries.near_storage.errors import RequestError, StaleError
from libraries.near_storage.query import Query
from libraries.near_storage.serving.protocol import (
    RECEIPT_BYTES,
    Check,
    Checked,
    Footers,
    OfNode,
    OfTable,
    Placements,
    Repaired,
    Tables,
    TableSummary,
    Way,
    decode,
)
from libraries.near_storage.serving.rpc import Caller, check_location

UPKEEP_S = 3600.0
"""Time limit of a check or repair."""

ReplyT = TypeVar("ReplyT")


def connect(uri: str, token: str, tls_roots: bytes | None = None, idle_s: float = 20.0, busy_s: float = 60.0) -> Client:
    """Connect to the catalog at `grpc+tls://HOST:PORT`, or at `grpc://HOST:PORT` on this machine.

    `tls_roots` are PEM certificates to trust instead of the system's certificates. A node that sends nothing for
    `idle_s` seconds counts as hung. While a server is busy, the client retries for `busy_s` seconds. Raises
    RequestError for an invalid address, UnavailableError or UnauthenticatedError if the catalog does not accept the
    connection.
    """
    check_location(uri)
    client = Client(uri, Caller(token, tls_roots), Patience(idle_s, busy_s))
    try:
        client.nodes()
    except BaseException:
        client.close()
        raise
    return client


class Client:
    """A connection made by `connect`. Thread-safe. Close it, or use it in a `with` block."""

    def __init__(self, uri: str, caller: Caller, patience: Patience) -> None:
        self._caller = caller
        self._closed = threading.Event()
        self._catalog = CatalogTarget(caller, uri, patience, self._closed)
        self.executor = Executor(caller, uri, patience, self._closed)
        """Runs queries, for code built on this client."""

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Running streams end with an error."""
        self._closed.set()
        self._caller.close()

    # --- tables ------------------------------------------------------------------------------------------

    def put(
        self, table: str, source: TableSource, rows_per_partition: int | None = None, progress: Progress | None = None
    ) -> int:
        """Store a new version of a table. Return its number once queries see the version.

        `source` is an Arrow table, or Parquet files or folders with Parquet files. Each file is stored byte for byte as
        a partition. With `rows_per_partition`, rows are instead rewritten into new files. A setting of the catalog
        decides how many nodes hold each partition. Raises RequestError for an unusable source, FooterError for a file
        that nodes refuse, FullError if too few nodes have space, and UnavailableError if too many nodes fail during the
        upload. After an error, queries do not see the new version, and the upload can be repeated.
        """
        return table_upload.put(self._catalog, table, source, rows_per_partition, progress)

    def tables(self) -> tuple[TableSummary, ...]:
        """Return a summary of each table, sorted by name."""
        return self._catalog.ask("tables", b"", Tables).tables

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table. Raises NotFoundError for an unknown table."""
        # The query names no columns, because a query cannot request a column whose name occurs twice.
        return self.executor.ask(Query(table, columns=(), limit=0), Options()).schema

    def delete(self, table: str) -> None:
        """Delete a table. The bytes of the table are removed after the grace period. Raises NotFoundError for an
        unknown table."""
        self._catalog.act("delete", OfTable(table))

    # --- queries -----------------------------------------------------------------------------------------

    def query(
        self, query: str | Query, way: Way | None = None, footers: Footers = "cached", refilter: bool = True
    ) -> pa.Table:
        """Return the complete, checked answer to SQL text or a `Query`, with rows in stored order. See `answer`."""
        return self.answer(query, way, footers, refilter).table

    def answer(
        self, query: str | Query, way: Way | None = None, footers: Footers = "cached", refilter: bool = True
    ) -> Answer:
        """Run a query. Return the answer and statistics about what was read.

        `way` is the access path: "v1" (nodes filter rows), "v2" (nodes send byte ranges) or "all" (nodes send whole
        files). By default the catalog chooses. `footers` and `refilter` are for measurements: `footers="parsed"` makes
        V1 parse all footers for each query, and `refilter=False` returns all rows of the row groups that remain after
        pruning. Raises PredicateError or RequestError for invalid queries, NotFoundError for an unknown table,
        UnavailableError or DamagedError if no node returns a part of the answer, and BusyError if the service stays
        busy.
        """
        parsed, options = _parsed(query), Options(way=way, footers=footers, refilter=refilter)
        try:
            return self.executor.answer(parsed, options)
        except StaleError:
            # The version was replaced and removed during the query. No row was returned yet, so read the new version.
            return self.executor.answer(parsed, options)

    def batches(self, query: str | Query, way: Way | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query without aggregates as they arrive, in stored order. Close the iterator to stop.

        The query is planned by this call, which raises the same errors as `answer`. Iteration raises StaleError if the
        version was replaced and its grace period ended before all rows were read.
        """
        parsed = _parsed(query)
        if parsed.aggregated:
            raise RequestError("batches() does not support aggregates: use query()")
        return self.executor.rows(self.executor.ask(parsed, Options(way=way)))

    def explain(self, query: str | Query, way: Way | None = None) -> Explanation:
        """Plan a query without reading. Return the chosen access path, the reason, the row groups and the estimated
        bytes."""
        return explanation(self.executor.ask(_parsed(query), Options(way=way)))

    def dataset(self, table: str, way: Way | None = None) -> NearStorageDataset:
        """Return the current version of the table as a `pyarrow.dataset.Dataset`, for DuckDB, Polars and others."""
        return dataset(self.executor, table, way)

    # --- upkeep ------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, str]:
        """Return the address of each storage node by name."""
        return {node.node: node.location for node in self._catalog.ask("nodes", b"", Placements).nodes}

    def forget(self, node: str) -> None:
        """Remove a node that is lost permanently. Call `repair` afterwards to copy its partitions from other replicas.

        Raises RequestError if the node still answers, because removing it would drop its replicas.
        """
        silent = {each.node for each in self.check().findings if each.kind == "silent"}
        if node in self.nodes() and node not in silent:
            raise RequestError(
                f"Node {node} answers, but only nodes that are gone for good can be forgotten. To remove this node, "
                "stop it first."
            )
        self._catalog.act("forget", OfNode(node))

    def check(self, verify: bool = False) -> Checked:
        """Compare the files on the nodes with the catalog. With `verify`, read every byte."""
        return self._upkeep("check", Check(verify), Checked)

    def repair(self, verify: bool = False) -> Repaired:
        """Repair what `check` finds: copy lost replicas and remove files that no table uses."""
        return self._upkeep("repair", Check(verify), Repaired)

    def _upkeep(self, name: str, message: msgspec.Struct, kind: type[ReplyT]) -> ReplyT:
        reply = self._caller.act(self._catalog.uri, name, message, UPKEEP_S)
        return decode(kind, reply, RECEIPT_BYTES)


def _parsed(query: str | Query) -> Query:
    if isinstance(query, Query):
        return query
    # sqlglot takes a quarter of a second to import, and clients that use only datasets do not need it.
    from libraries.near_storage.predicates.sql import parse

    return parse(query)
