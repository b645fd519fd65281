"""What a user of near storage holds: a connection to a catalog, by which tables are put, asked for and looked after.

Rows come from the nodes, whose addresses and tickets the catalog gives.
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
"""How long a check or repair may take."""

ReplyT = TypeVar("ReplyT")


def connect(uri: str, token: str, tls_roots: bytes | None = None, idle_s: float = 20.0, busy_s: float = 60.0) -> Client:
    """Connect to the catalog at `grpc+tls://HOST:PORT`, or `grpc://HOST:PORT` on this machine itself.

    `tls_roots` are PEM certificates to trust in place of the system's. A node that sends nothing for `idle_s` seconds
    counts as hung; `busy_s` is for how long a client comes again where all places are taken. RequestError for an
    address that cannot be meant, UnavailableError or UnauthenticatedError if the catalog does not let this client in.
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
    """A connection, made by `connect`. Safe for threads. To be closed, or used in a `with` block."""

    def __init__(self, uri: str, caller: Caller, patience: Patience) -> None:
        self._caller = caller
        self._closed = threading.Event()
        self._catalog = CatalogTarget(caller, uri, patience, self._closed)
        self.executor = Executor(caller, uri, patience, self._closed)
        """How queries are run, for what is built on this client."""

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; streams that are under way end in an error."""
        self._closed.set()
        self._caller.close()

    # --- tables ------------------------------------------------------------------------------------------

    def put(
        self,
        table: str,
        source: TableSource,
        rows_per_partition: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Store a new version of a table, and return its number when it is what queries see.

        `source` is an Arrow table, or Parquet files or folders of them, which are stored byte for byte, a partition
        each; with `rows_per_partition` their rows are written anew. As many nodes hold each partition as the catalog
        was started with replicas. RequestError for what is no table, FooterError for files that are refused, FullError
        if too few nodes have room, UnavailableError if too many are lost meanwhile; then nothing of it is seen, and it
        can be put again.
        """
        return table_upload.put(self._catalog, table, source, rows_per_partition, progress)

    def tables(self) -> tuple[TableSummary, ...]:
        """All tables, by name."""
        return self._catalog.ask("tables", b"", Tables).tables

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table. NotFoundError if there is none."""
        # By no name: two columns may have one, and neither can be asked for.
        return self.executor.ask(Query(table, columns=(), limit=0), Options()).schema

    def delete(self, table: str) -> None:
        """Delete a table; its bytes go after the catalog's grace. NotFoundError if there is none."""
        self._catalog.act("delete", OfTable(table))

    # --- queries -----------------------------------------------------------------------------------------

    def query(
        self, query: str | Query, way: Way | None = None, footers: Footers = "cached", refilter: bool = True
    ) -> pa.Table:
        """The answer to SQL text or a `Query`, complete and checked, rows in stored order; see `answer`."""
        return self.answer(query, way, footers, refilter).table

    def answer(
        self, query: str | Query, way: Way | None = None, footers: Footers = "cached", refilter: bool = True
    ) -> Answer:
        """The answer, and what it took.

        Without a `way` the catalog chooses. `footers` and `refilter` are for measurements: V1 that parses all footers
        anew; all rows of the row groups that the filter leaves. Raises PredicateError and RequestError for what cannot
        be asked, NotFoundError for a table that is not there, UnavailableError and DamagedError if no node gives a part
        of the answer, BusyError if the service stays busy.
        """
        parsed, options = _parsed(query), Options(way=way, footers=footers, refilter=refilter)
        try:
            return self.executor.answer(parsed, options)
        except StaleError:
            # The version was replaced and removed while it was read. Nobody saw any of it: the new one is read.
            return self.executor.answer(parsed, options)

    def batches(self, query: str | Query, way: Way | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a query without aggregates as they come, in stored order. Closing the iterator stops the nodes.

        The query is planned at once, with the errors of `answer`. StaleError while iterating if the version was
        replaced and its grace ended before it was read.
        """
        parsed = _parsed(query)
        if parsed.aggregated:
            raise RequestError("aggregates come as a whole: use query")
        return self.executor.rows(self.executor.ask(parsed, Options(way=way)))

    def explain(self, query: str | Query, way: Way | None = None) -> Explanation:
        """How the query would be answered, without reading: the way and why, row groups, bytes."""
        return explanation(self.executor.ask(_parsed(query), Options(way=way)))

    def dataset(self, table: str, way: Way | None = None) -> NearStorageDataset:
        """The table as a `pyarrow.dataset.Dataset`, for DuckDB, Polars and others: one version, as it is now."""
        return dataset(self.executor, table, way)

    # --- upkeep ------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, str]:
        """Names and addresses of the storage nodes."""
        return {node.node: node.location for node in self._catalog.ask("nodes", b"", Placements).nodes}

    def forget(self, node: str) -> None:
        """A node is gone for good; `repair` then copies what it had from elsewhere.

        Raises RequestError while it answers: a slip of the pen would take its replicas away from under it.
        """
        silent = {each.node for each in self.check().findings if each.kind == "silent"}
        if node in self.nodes() and node not in silent:
            told = f"Node {node} answers: forget only what is gone for good. To take it away, stop it first."
            raise RequestError(told)
        self._catalog.act("forget", OfNode(node))

    def check(self, verify: bool = False) -> Checked:
        """What the nodes hold against what the catalog knows; `verify` reads every byte."""
        return self._upkeep("check", Check(verify), Checked)

    def repair(self, verify: bool = False) -> Repaired:
        """Mend what `check` finds: lost replicas are copied, orphans removed."""
        return self._upkeep("repair", Check(verify), Repaired)

    def _upkeep(self, name: str, message: msgspec.Struct, kind: type[ReplyT]) -> ReplyT:
        reply = self._caller.act(self._catalog.uri, name, message, UPKEEP_S)
        return decode(kind, reply, RECEIPT_BYTES)


def _parsed(query: str | Query) -> Query:
    if isinstance(query, Query):
        return query
    # sqlglot takes a quarter of a second to import, and a client of datasets needs none.
    from libraries.near_storage.predicates.sql import parse

    return parse(query)
