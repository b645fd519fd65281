"""Run queries on local Parquet files in one process, without a network. Used by benchmarks.

Client and storage node are one process here, so benchmarks measure the cost of an access path without the cost of the
network. Preparing the files is a separate step, like storing a table on a node.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from libraries.filters import binding, filter_evaluation
from libraries.filters.tree import Predicate, columns_of
from libraries.near_storage import aggregates
from libraries.near_storage.errors import RequestError
from libraries.near_storage.parquet import compact
from libraries.near_storage.query import Query
from libraries.near_storage.reading import by_parquet, by_ranges, byte_range_access, ranges, working_types
from libraries.near_storage.reading.columns import Leaves
from libraries.near_storage.reading.footers import FooterCache, ParsedFooter, checked
from libraries.near_storage.reading.local_file import Identity, LocalFile, identity_of
from libraries.near_storage.reading.row_group_selection import Chosen, choose
from libraries.near_storage.reading.row_mask import matching
from libraries.near_storage.storing.partition_metadata import PartitionInfo, same_fields

Way: TypeAlias = Literal["v1", "v2", "all"]
"""The access path, i.e. how a query reads the files. v1: the node decodes and filters rows (Weigand 2025, chapter 6).
v2: the node sends byte ranges, which the client decodes (chapter 7). all: the client fetches whole files and processes
them."""

Footers: TypeAlias = Literal["cached", "parsed"]
"""cached: parsed footers are kept between queries. parsed: each query parses footers again, and `v1` then parses the
footers of all files (Weigand 2025, 8.1)."""

Batches: TypeAlias = Generator[pa.RecordBatch, None, None]

CACHE_BYTES = 2 << 30
"""Maximum estimated size of cached footers."""


@dataclass
class Report:
    """What one query read."""

    row_groups: int = 0
    row_groups_chosen: int = 0
    files: int = 0
    opened: int = 0
    """How many times a file was opened, for its footer or its data."""
    footers_parsed: int = 0
    read_bytes: int = 0
    """Bytes read of column chunks, or of whole files. Footers that are read separately do not count."""


@dataclass(frozen=True)
class _Plan:
    """A query that was checked against the table's schema, with the columns to read and the columns to return."""

    where: Predicate | None
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    """Columns of the answer and of the filter, in the order of the file."""
    filter: Predicate | None
    """The filter to apply to the rows that were read. This is `where`, or None if `query` was called with
    `refilter=False`."""
    way: Way
    footers: Footers


class LocalFiles:
    """Parquet files of one schema as one table, with rows in the order of the files. Create it with `prepare` or
    `of`."""

    def __init__(self, files: Sequence[LocalFile]) -> None:
        if not files:
            raise RequestError("no files: give at least one file")
        self.schema = files[0].schema
        for file in files:
            if not same_fields(self.schema, file.schema):
                raise RequestError(
                    f"{file.path.name}: has other columns than {files[0].path.name}; a table must have one schema"
                )
        self._files = files
        self._footers = FooterCache(CACHE_BYTES)
        self._leaves = Leaves(self.schema)
        self._names = tuple(self.schema.names)
        self._no_rows = self.schema.empty_table()
        self.metadata = compact.together([file.compact for file in files])
        """Compact metadata of all files, concatenated."""

    @classmethod
    def prepare(cls, paths: Iterable[Path]) -> LocalFiles:
        """Read the footers and compute digests of the chunks, once per file even if several links lead to it.

        Raises FooterError for an invalid or unsupported footer, and RequestError if there are no files or if schemas
        differ.
        """
        known: dict[Identity, LocalFile] = {}
        files = []
        for path in paths:
            identity = identity_of(path.stat())
            if identity not in known:
                known[identity] = LocalFile.prepare(path)
            files.append(replace(known[identity], path=path))
        return cls(files)

    @classmethod
    def of(cls, partitions: Iterable[tuple[Path, PartitionInfo]]) -> LocalFiles:
        """Make a table from files and their stored descriptions. A file is read only when a query needs it.

        Raises StaleError if the size of a file changed, and RequestError if there are no files or if schemas differ.
        """
        return cls([LocalFile.of(path, info) for path, info in partitions])

    @property
    def stored_bytes(self) -> int:
        """Total size of all files. Throughput is computed from this size."""
        return sum(file.stored_bytes for file in self._files)

    def keep_footers(self) -> None:
        """Parse the footers of all files now, so that queries with `cached` footers need not parse them.

        Raises StaleError for a file that was replaced since it was prepared, DamagedError for a changed footer.
        """
        for file in self._files:
            self._kept_footer(file, Report())

    def query(
        self, query: Query, way: Way = "v2", footers: Footers = "cached", refilter: bool = True
    ) -> tuple[pa.Table, Report]:
        """Run a query. Return the answer and a report of the bytes that were read. `query.table` is ignored.

        Without `refilter` (for measurements), return all rows of the row groups that may match. Raises PredicateError
        and RequestError for invalid queries, StaleError for a file that was replaced since it was prepared,
        DamagedError for changed bytes.
        """
        report = Report(row_groups=self.metadata.groups, files=len(self._files))
        if query.aggregated:
            aggregation = aggregates.plan(query, self.schema)
            plan = self._planned(query.where, aggregation.columns, way, footers, refilter)
            tables = (pa.Table.from_batches([batch]) for batch in self._rows(plan, report))
            merged = aggregates.merged(aggregation, (aggregates.part(aggregation, table) for table in tables))
            return aggregates.finish(aggregation, merged), report
        plan = self._planned(query.where, query.columns, way, footers, refilter)
        batches = self._rows(plan, report)
        if query.limit is not None:
            batches = _first(batches, query.limit)
        return self._table(batches, plan.columns), report

    def parts(self, query: Query) -> Iterator[pa.RecordBatch]:
        """Yield the batches that nodes would send for `query` with the access path v2: stored chunks, file by file, in
        the schema `by_ranges.PARTS`."""
        plan = self._planned(query.where, query.columns, "v2", "cached", False)
        report = Report()
        leaves = self._leaves.of(plan.needed)
        for chosen in choose(self.metadata, plan.where):
            file, groups = self._files[chosen.file], chosen.groups.tolist()
            with _opened(file, report) as fd:
                yield from by_ranges.parts(fd, file.compact, file.digests, groups, leaves)

    def _table(self, batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]) -> pa.Table:
        """Return the batches as one table. If there are no batches, return an empty table with the columns."""
        empty = self._no_rows if columns == self._names else self._no_rows.select(columns)
        first = next(batches, None)
        if first is None:
            return empty
        return pa.Table.from_batches(working_types.cast(batch, empty.schema) for batch in chain([first], batches))

    def _planned(
        self, where: Predicate | None, columns: Sequence[str] | None, way: Way, footers: Footers, refilter: bool
    ) -> _Plan:
        bound = None if where is None else binding.bind(where, self.schema)
        shown = self._names if columns is None else tuple(columns)
        wanted = frozenset(shown) | (columns_of(bound) if bound is not None else frozenset())
        self._leaves.of(wanted)
        needed = tuple(name for name in self._names if name in wanted)
        return _Plan(bound, shown, needed, bound if refilter else None, way, footers)

    def _rows(self, plan: _Plan, report: Report) -> Batches:
        if plan.way == "all":
            report.row_groups_chosen = report.row_groups
            return self._by_fetching(plan, report)
        chosen = choose(self.metadata, plan.where)
        report.row_groups_chosen = sum(len(each.groups) for each in chosen)
        return (self._by_parquet if plan.way == "v1" else self._by_ranges)(plan, chosen, report)

    def _by_parquet(self, plan: _Plan, chosen: Sequence[Chosen], report: Report) -> Batches:
        of_file = {each.file: each for each in chosen}
        # The reader of Weigand 2025 parses the footer of every file before it can choose row groups.
        for number in range(len(self._files)) if plan.footers == "parsed" else of_file:
            file = self._files[number]
            original = self._footer(file, plan, report)
            if (each := of_file.get(number)) is None:
                continue
            with _opened(file, report) as fd:
                chunks = by_parquet.StoredChunks(fd, file.compact, file.digests)
                groups, all_match = each.groups.tolist(), each.all_match.tolist()
                try:
                    yield from by_parquet.batches(chunks, original, groups, plan.columns, plan.filter, all_match)
                finally:
                    report.read_bytes += chunks.read_bytes

    def _by_ranges(self, plan: _Plan, chosen: Sequence[Chosen], report: Report) -> Batches:
        leaves = self._leaves.of(plan.needed)
        for each in chosen:
            file, groups = self._files[each.file], each.groups.tolist()
            original = self._footer(file, plan, report)
            with _opened(file, report) as fd:
                parts = _counted(by_ranges.parts(fd, file.compact, file.digests, groups, leaves), report)
                for batch in byte_range_access.batches(original, parts, groups, plan.needed, file.digests):
                    yield _answer(batch, plan)

    def _by_fetching(self, plan: _Plan, report: Report) -> Batches:
        for file in self._files:
            content = pa.allocate_buffer(file.stored_bytes)
            with _opened(file, report) as fd:
                ranges.fill(fd, 0, [memoryview(content).cast("B")])
            report.read_bytes += content.size
            original = self._footer(file, plan, report)
            chunks = by_parquet.StoredChunks(content, file.compact, file.digests)
            groups = np.flatnonzero(file.compact.rows).tolist()
            yield from by_parquet.batches(chunks, original, groups, plan.columns, plan.filter)

    def _footer(self, file: LocalFile, plan: _Plan, report: Report) -> ParsedFooter:
        return _parsed(file, report) if plan.footers == "parsed" else self._kept_footer(file, report)

    def _kept_footer(self, file: LocalFile, report: Report) -> ParsedFooter:
        return self._footers.get(file.identity, lambda: _parsed(file, report))


def _parsed(file: LocalFile, report: Report) -> ParsedFooter:
    report.footers_parsed += 1
    with _opened(file, report) as fd:
        return checked(file.footer_bytes(fd), file.footer_digest)


@contextmanager
def _opened(file: LocalFile, report: Report) -> Iterator[int]:
    report.opened += 1
    with file.opened() as fd:
        yield fd


def _counted(parts: Iterator[pa.RecordBatch], report: Report) -> Iterator[pa.RecordBatch]:
    for batch in parts:
        report.read_bytes += batch.column("data").buffers()[2].size
        yield batch


def _answer(batch: pa.RecordBatch, plan: _Plan) -> pa.RecordBatch:
    if plan.filter is not None:
        batch = matching(batch, filter_evaluation.mask(plan.filter, batch))
    return batch.select(plan.columns)


def _first(batches: Batches, limit: int) -> Batches:
    with closing(batches):
        while limit and (batch := next(batches, None)) is not None:
            taken = batch.slice(0, limit)
            limit -= taken.num_rows
            yield taken
