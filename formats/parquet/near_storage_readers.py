"""Read Parquet files that near storage has stored, with one class for each value of the setting `reader`.

Near storage is this project's service that filters Parquet files where they are stored. A catalog knows the files of a
table, and nodes store the files.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
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
    from libraries.near_storage.storing.partition_metadata import PartitionInfo

TABLE = "stored"
"""Name of the stored table in the catalog."""
CATALOG, NODE = "catalog", "node-1"
"""Names of the two folders in a stored copy: one for the catalog, one for the only node. The node has the same name as
its folder."""
ORDER = "order.json"
"""Name of a file in the folder of a stored copy. It lists the digests of the Parquet files in the order of the table's
rows."""


class Copy:
    """The Parquet files of a stored copy, in the order of the table's rows."""

    def __init__(self, location: Path) -> None:
        from libraries.near_storage.storing.partitions import PARTITION

        self.node = location / NODE
        self.digests: list[str] = json.loads((location / ORDER).read_text())
        self.paths = [self.node / f"{digest}{PARTITION}" for digest in self.digests]

    def schema(self) -> pa.Schema:
        """Return the schema of the first file."""
        import pyarrow.parquet as pq

        return pq.read_schema(self.paths[0])

    def infos(self) -> list[PartitionInfo]:
        """Return the metadata that the node has stored for each file."""
        from libraries.near_storage.storing.partitions import PartitionStore

        store = PartitionStore(self.node)
        try:
            return [store.info(digest) for digest in self.digests]
        finally:
            store.close()


class Reader(ABC):
    """Base class of the readers of a stored copy. A reader opens a copy, and declares which data the reader changes or
    refuses."""

    losses: ClassVar[tuple[Loss, ...]] = (
        shared.CATEGORIES_OF_NULLS,
        shared.DICTIONARY_OF_NUMBERS_AS_VALUES,
        SECONDS_AS_MS,
    )
    libraries: ClassVar[tuple[str, ...]] = ()
    """Modules that this reader needs in addition to near storage and pyarrow."""
    way: ClassVar[Way | None] = None
    """Name of the access path in near storage's queries. None if a library other than near storage reads the files,
    because near storage's services cannot run this library."""
    warm_up_rows: ClassVar[int | None] = 1
    """Number of rows of one column that are read to warm up the services; None for all rows."""
    has_techniques: ClassVar[bool] = False
    """Whether the reader supports the setting `technique`, which selects what a filter does: return matching rows, only
    skip row groups, or return all rows. Only such readers support the operation `metadata`."""

    def __init__(self, values: Mapping[str, str | int | None], threads: int | None) -> None:
        self.values, self.threads = values, threads

    def refusal(self, schema: pa.Schema) -> str | None:
        """Return the reason why this reader cannot return a table of this schema, or None."""
        return None

    @abstractmethod
    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Return a handle of a stored copy. `client` is connected to the services of the copy; None if no services
        run."""


class _ByNearStorage(Reader):
    """Base class of readers that send queries to near storage's services, by near storage's client.

    If no services run, the same code answers the queries in this process."""

    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Return a handle. No values are read here.

        If no services run, this reads the footers of all files once and keeps them. With footers=parsed, every query
        parses the footers instead."""
        import pyarrow as pa

        from formats.parquet.near_storage_filters import tree_of
        from libraries.near_storage.local import LocalFiles
        from libraries.near_storage.query import Aggregate, Query

        schema = copy.schema()
        technique = self.values["technique"]
        footers = "parsed" if self.values["footers"] == "parsed" else "cached"
        options: dict[str, Any] = {"way": self.way, "footers": footers, "refilter": technique == "rows"}
        if client is None:
            files = LocalFiles.of(zip(copy.paths, copy.infos(), strict=True))
            if footers == "cached":
                # Footers are read now, so that the first query does not take longer. pyarrow and DuckDB keep footers,
                # too.
                files.keep_footers()

        def ask(query: Query) -> pa.Table:
            return files.query(query, **options)[0] if client is None else client.query(query, **options)

        def met(asked: Predicate) -> Any:
            return tree_of(asked, schema.field(asked.column).type)

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            where = None if asked is None or technique == "none" else met(asked)
            return ask(Query(TABLE, tuple(columns), where))

        def aggregate(asked: Predicate, column: str) -> pa.Table:
            functions = (
                Aggregate("count", None, "count"),
                *(Aggregate(name, column, name) for name in ("min", "max", "sum")),
            )
            found = ask(Query(TABLE, (), met(asked), functions))
            return found.cast(pa.schema([(name, pa.int64()) for name in found.column_names]))

        def metadata(files: int) -> pa.Table:
            held = [number % len(copy.paths) for number in range(files)]
            self._kept, counts = self._metadata(copy, held)
            return pa.table({"rows": pa.array([count for number in held for count in counts[number]], pa.int64())})

        return Handle(
            project=partial(rows, None),
            scan=rows,
            aggregate=aggregate if technique == "rows" else None,
            metadata=metadata if self.has_techniques else None,
            close=(lambda: None) if client is None else client.close,
        )

    def _metadata(self, copy: Copy, held: Sequence[int]) -> tuple[Any, list[list[int]]]:
        """Load the metadata of the files whose numbers are in `held`.

        Return the metadata, and for each file a list with the number of rows of each row group."""
        raise NotImplementedError(f"{type(self).__name__} has no services")


class Ranges(_ByNearStorage):
    """The node sends ranges of bytes from the files, and the client decodes and filters them."""

    way = "v2"
    has_techniques = True

    def _metadata(self, copy: Copy, held: Sequence[int]) -> tuple[Any, list[list[int]]]:
        from libraries.near_storage.parquet.compact import together
        from libraries.near_storage.storing.partition_metadata import PartitionInfo
        from libraries.near_storage.storing.partitions import INFO

        taken: dict[int, Any] = {}
        for number in held:
            # If a number is repeated, the file's metadata is decoded again, but only the last copy is kept. Repeated
            # files therefore use no extra memory before `together` combines the metadata.
            described = (copy.node / f"{copy.digests[number]}{INFO}").read_bytes()
            taken[number] = PartitionInfo.decode(described).compact
        return together([taken[number] for number in held]), [each.rows.tolist() for each in taken.values()]


class NodeRows(_ByNearStorage):
    """The node decodes and filters the rows, and sends the result.

    The node keeps parsed footers in memory. With footers=parsed, the node keeps the bytes of the footers instead, and
    parses these bytes in every query.
    """

    way = "v1"
    warm_up_rows = None
    has_techniques = True

    def _metadata(self, copy: Copy, held: Sequence[int]) -> tuple[Any, list[list[int]]]:
        import pyarrow.parquet as pq

        if self.values["footers"] == "parsed":
            infos = copy.infos()
            footers = [_end(copy.paths[number], infos[number].footer_bytes) for number in held]
            return footers, [info.compact.rows.tolist() for info in infos]
        parsed = [pq.read_metadata(copy.paths[number]) for number in held]
        groups = ([footer.row_group(group) for group in range(footer.num_row_groups)] for footer in parsed)
        return parsed, [[group.num_rows for group in each] for each in islice(groups, len(copy.paths))]


class Fetch(_ByNearStorage):
    """The node sends whole files, and the client reads them."""

    way = "all"


class ByPyarrow(Reader):
    """pyarrow's data sets read the files in this process, without near storage."""

    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Return a handle with a pyarrow data set of all files."""
        from pyarrow.dataset import dataset

        files = dataset([str(path) for path in copy.paths], format="parquet")
        threads = self.threads is None

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            met = None if asked is None else arrow_expression(asked)
            return files.to_table(columns=list(columns), filter=met, use_threads=threads)

        return Handle(project=partial(rows, None), scan=rows)


class ByDuckdb(Reader):
    """DuckDB's read_parquet reads the files in this process, without near storage.

    The files are the same as for other readers. DuckDB changes or refuses more types than pyarrow."""

    libraries = ("duckdb",)
    losses = (
        shared.CATEGORIES_OF_NULLS,
        DICTIONARY_AS_VALUES,
        shared.FLOAT16_AS_FLOAT32,
        shared.VECTORS_AS_LISTS,
        TIMESTAMPS_BY_DUCKDB,
    )

    def refusal(self, schema: pa.Schema) -> str | None:
        """Return a reason if the table has durations, or column names that DuckDB changes."""
        import pyarrow.types as of

        for field in schema:
            if of.is_duration(field.type):
                return f"DuckDB reads durations in Parquet as integers (column {field.name})"
            if not field.name or "\0" in field.name:
                return f"DuckDB changes the column name {field.name!r}"
        return refusals.of_names_alike(schema)

    def open(self, copy: Copy, client: Client | None) -> Handle:
        """Return a handle with a DuckDB connection, which keeps parsed footers in memory."""
        import duckdb

        config: dict[str, Any] = {} if self.threads is None else {"threads": self.threads}
        connection = duckdb.connect(":memory:", config=config)
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
            figures = f"count(*) AS count, min({name}) AS min, max({name}) AS max, CAST(sum({name}) AS BIGINT) AS sum"
            return filtered(asked).aggregate(figures).to_arrow_table()

        return Handle(project=partial(rows, None), scan=rows, aggregate=aggregate, close=connection.close)


READERS: dict[str, type[Reader]] = {
    "ranges": Ranges,
    "parquet": NodeRows,
    "fetch": Fetch,
    "pyarrow": ByPyarrow,
    "duckdb": ByDuckdb,
}
"""Maps each value of the setting `reader` to its class."""


def _end(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(-size_bytes, 2)
        return file.read()
