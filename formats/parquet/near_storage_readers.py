"""The ways to read a stored copy of near storage: one class for each value of the setting `reader`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.losses import Loss
from adapters.offers import Handle
from adapters.predicate import Predicate
from formats.parquet.common import DICTIONARY_AS_VALUES, SECONDS_AS_MS, TIMESTAMPS_BY_DUCKDB
from formats.shared import pandas_losses as shared
from formats.shared import refusals
from formats.shared.conditions import arrow_expression, sql_condition
from formats.shared.sql import selected

if TYPE_CHECKING:
    import pyarrow as pa

    from libraries.near_storage.client.connection import Client
    from libraries.near_storage.local import Way
    from libraries.near_storage.storing.describing import PartitionInfo

TABLE = "stored"
"""Name of the table in the catalog of a stored copy."""
CATALOG, NODE = "catalog", "node-1"
"""Folders of a stored copy; the node has the name of its folder."""
ORDER = "order.json"
"""In the folder of a stored copy: the digests of its files, in the order of their rows."""


class Copy:
    """The files of a stored copy, in the order of their rows."""

    def __init__(self, location: Path) -> None:
        from libraries.near_storage.storing import partitions

        self._partitions, self._node = partitions, location / NODE
        self.digests: list[str] = json.loads((location / ORDER).read_text())
        self.paths = [self._node / f"{digest}{partitions.PARTITION}" for digest in self.digests]

    def schema(self) -> pa.Schema:
        """Return the schema of the first file."""
        import pyarrow.parquet

        return pyarrow.parquet.read_schema(self.paths[0])

    def infos(self) -> list[PartitionInfo]:
        """Return what the node knows of each file."""
        store = self._partitions.PartitionStore(self._node)
        try:
            return [store.info(digest) for digest in self.digests]
        finally:
            store.close()

    def description(self, number: int) -> bytes:
        """Read the description of one file, which `PartitionInfo` decodes."""
        return (self._node / f"{self.digests[number]}{self._partitions.INFO}").read_bytes()


class Reader(ABC):
    """One way to read: what it changes and refuses, and the calls of an open copy."""

    losses: ClassVar[tuple[Loss, ...]] = (
        shared.CATEGORIES_OF_NULLS,
        shared.DICTIONARY_OF_NUMBERS_AS_VALUES,
        SECONDS_AS_MS,
    )
    is_served: ClassVar[bool] = False
    """Whether services can do the reading."""
    has_techniques: ClassVar[bool] = False
    """Whether row groups and rows can be left out separately. These readers hold metadata in a form of their own."""

    def __init__(self, values: Mapping[str, str | int | None], threads: int | None) -> None:
        self.values, self.threads = values, threads

    def refusal(self, schema: pa.Schema) -> str | None:
        """Return why a table of this schema cannot be read back, or None."""
        return None

    @abstractmethod
    def load(self) -> None:
        """Import the libraries of this reader."""

    def warm_up(self, client: Client) -> None:
        """Query the services once for little, where `is_served`."""
        raise NotImplementedError

    @abstractmethod
    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Open a copy; `client` is connected to the services of a served one."""


class _ByNearStorage(Reader):
    """near_storage: by its client, or without services by the same way of reading in this process."""

    is_served = True
    way: ClassVar[Way]
    """Name of this reader in the library."""
    warm_up_rows: ClassVar[int | None] = 1
    """How many rows of one column warm the services up; None for all."""

    def load(self) -> None:
        """Import near_storage."""
        import pyarrow
        import pyarrow.parquet

        from formats.parquet import near_storage_filters
        from libraries.near_storage import local, query
        from libraries.near_storage.parquet import compact
        from libraries.near_storage.storing import describing

        self._arrow, self._parquet, self._filters = pyarrow, pyarrow.parquet, near_storage_filters
        self._local, self._query, self._compact, self._describing = local, query, compact, describing
        self._kept: Any = None

    def warm_up(self, client: Client) -> None:
        """Query the services once for little."""
        columns = tuple(client.schema(TABLE).names[:1])
        client.query(self._query.Query(TABLE, columns, limit=self.warm_up_rows), self.way)

    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Open without values. Footers are read unless each query parses them."""
        schema = copy.schema()
        technique = self.values["technique"]
        footers = "parsed" if self.values["footers"] == "parsed" else "cached"
        options: dict[str, Any] = {"way": self.way, "footers": footers, "refilter": technique == "rows"}
        if client is None:
            files = self._local.LocalFiles.of(zip(copy.paths, copy.infos(), strict=True))
            if footers == "cached":
                # As pyarrow and DuckDB do. Otherwise the first call to meet a file would take longer than others.
                files.keep_footers()

        def ask(query: Any) -> pa.Table:
            return files.query(query, **options)[0] if client is None else client.query(query, **options)

        def met(asked: Predicate) -> Any:
            return self._filters.tree_of(asked, schema.field(asked.column).type)

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            where = None if asked is None or technique == "none" else met(asked)
            return ask(self._query.Query(TABLE, tuple(columns), where))

        def aggregate(asked: Predicate, column: str) -> pa.Table:
            made = self._query.Aggregate
            functions = (made("count", None, "count"), *(made(name, column, name) for name in ("min", "max", "sum")))
            found = ask(self._query.Query(TABLE, (), met(asked), functions))
            return found.cast(self._arrow.schema([(name, self._arrow.int64()) for name in found.column_names]))

        return Handle(
            project=partial(rows, None),
            scan=rows,
            aggregate=aggregate if technique == "rows" else None,
            metadata=partial(self._metadata, copy) if self.has_techniques else None,
            close=_nothing if client is None else client.close,
        )

    def _metadata(self, copy: Copy, files: int) -> pa.Table:
        """Hold the metadata of `files` files, those of the copy again and again."""
        held = [number % len(copy.paths) for number in range(files)]
        self._kept, counts = self._taken(copy, held)
        rows = [count for number in held for count in counts[number]]
        return self._arrow.table({"rows": self._arrow.array(rows, self._arrow.int64())})

    def _taken(self, copy: Copy, held: Sequence[int]) -> tuple[Any, list[list[int]]]:
        """Return the metadata of the files of these numbers, and the rows of each row group of each file."""
        raise NotImplementedError


class Ranges(_ByNearStorage):
    """Byte ranges, which the client decodes and filters."""

    way = "v2"
    has_techniques = True

    def _taken(self, copy: Copy, held: Sequence[int]) -> tuple[Any, list[list[int]]]:
        def compact(number: int) -> Any:
            return self._describing.PartitionInfo.decode(copy.description(number)).compact

        first = held[: len(copy.paths)]
        taken = [compact(number) for number in first]
        for number in held[len(first) :]:
            # Decoded anew each time. An equal one takes no memory of its own until all are put together.
            taken[number] = compact(number)
        return self._compact.together([taken[number] for number in held]), [each.rows.tolist() for each in taken]


class NodeRows(_ByNearStorage):
    """Rows, which the node decodes and filters. It holds parsed footers, or their bytes if each query parses them."""

    way = "v1"
    has_techniques = True
    warm_up_rows = None

    def _taken(self, copy: Copy, held: Sequence[int]) -> tuple[Any, list[list[int]]]:
        if self.values["footers"] == "parsed":
            infos = copy.infos()
            footers = [_end(copy.paths[number], infos[number].footer_bytes) for number in held]
            return footers, [info.compact.rows.tolist() for info in infos]
        parsed = [self._parquet.read_metadata(copy.paths[number]) for number in held]
        return parsed, [
            [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            for footer in parsed[: len(copy.paths)]
        ]


class Fetch(_ByNearStorage):
    """All files, which the client reads."""

    way = "all"


class ByPyarrow(Reader):
    """pyarrow's data sets."""

    def load(self) -> None:
        """Import pyarrow."""
        import pyarrow.dataset

        self._datasets = pyarrow.dataset

    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Open a data set of all files."""
        dataset = self._datasets.dataset([str(path) for path in copy.paths], format="parquet")
        threads = self.threads is None

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            met = None if asked is None else arrow_expression(asked)
            return dataset.to_table(columns=list(columns), filter=met, use_threads=threads)

        return Handle(project=partial(rows, None), scan=rows)


class ByDuckdb(Reader):
    """DuckDB's read_parquet, which changes and refuses more than pyarrow's writer."""

    losses = (
        shared.CATEGORIES_OF_NULLS,
        DICTIONARY_AS_VALUES,
        shared.FLOAT16_AS_FLOAT32,
        shared.VECTORS_AS_LISTS,
        TIMESTAMPS_BY_DUCKDB,
    )

    def refusal(self, schema: pa.Schema) -> str | None:
        """Return the first column of durations, or of a name that DuckDB changes."""
        import pyarrow.types as of

        for field in schema:
            if of.is_duration(field.type):
                return f"DuckDB reads durations of Parquet as integers (column {field.name})"
            if not field.name or "\0" in field.name:
                return f"DuckDB does not give the name {field.name!r} of a column back"
        return refusals.of_names_alike(schema)

    def load(self) -> None:
        """Import DuckDB."""
        import duckdb

        self._duckdb = duckdb

    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Open a connection, which keeps parsed footers."""
        config: dict[str, Any] = {} if self.threads is None else {"threads": self.threads}
        connection = self._duckdb.connect(":memory:", config=config)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET parquet_metadata_cache = true")
        relation = connection.read_parquet([str(path) for path in copy.paths])

        def filtered(asked: Predicate) -> Any:
            return relation.filter(sql_condition(asked, selected([asked.column], relation.columns)))

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            met = relation if asked is None else filtered(asked)
            return met.project(selected(columns, relation.columns)).to_arrow_table()

        def aggregate(asked: Predicate, column: str) -> pa.Table:
            name = selected([column], relation.columns)
            told = f"count(*) AS count, min({name}) AS min, max({name}) AS max, CAST(sum({name}) AS BIGINT) AS sum"
            return filtered(asked).aggregate(told).to_arrow_table()

        return Handle(project=partial(rows, None), scan=rows, aggregate=aggregate, close=connection.close)


READERS: dict[str, type[Reader]] = {
    "ranges": Ranges,
    "parquet": NodeRows,
    "fetch": Fetch,
    "pyarrow": ByPyarrow,
    "duckdb": ByDuckdb,
}
"""Value of the setting `reader` -> its class."""


def _end(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(-size_bytes, 2)
        return file.read()


def _nothing() -> None:
    pass
