"""Parquet by near storage: many files whose row groups are pruned and filtered by what is known of them.

A stored copy is the folder of a catalog and of one node, as they would serve it. Without services it is read by the
same two ways in this process; pyarrow's data sets and DuckDB read the same files, for comparison.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import parquet_codecs
from adapters.contract import Besides, Can, Maturity, Native, Setting, Stage, Stored
from adapters.errors import RefusedData, RefusedSetting
from adapters.losses import Loss
from adapters.offers import Handle, Offers, Sifts
from adapters.predicate import Kind, Predicate
from adapters.services import Served, Service
from formats.near_storage import CATALOG, NODE
from formats.parquet.common import DICTIONARY_AS_VALUES, SECONDS_AS_MS, TIMESTAMPS_BY_DUCKDB, Parquet
from formats.shared import pandas_losses as shared
from formats.shared import refusals
from formats.shared.conditions import arrow_expression, sql_condition
from formats.shared.sql import selected

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "stored"
"""How the table of a stored copy is called in its catalog."""
ORDER = "order.json"
"""In the folder of a stored copy: the digests of its files, in the order of their rows."""
GROUP_ROWS, FILE_GROUPS = 10_000, 10
"""Rows of a row group, and row groups of a file, where nobody says how many."""
WAYS = {"ranges": "v2", "parquet": "v1", "fetch": "all"}
"""What the readers are called in the library."""
_MODULE = ("-m", "formats.near_storage.process")

_Scan = Callable[[Predicate | None, Sequence[str]], Any]


class ParquetNearStorage(Parquet):
    """near_storage's catalog, nodes and client; without services both ways of reading in one process."""

    engine = "near-storage"
    extra = "near-storage"
    distributions = ("format-bench", "pyarrow", "xxhash")
    native = Native.ARROW
    suffix = ".store"
    is_folder = True
    settings: ClassVar = {
        **Parquet.settings,
        "reader": Setting(
            (*WAYS, "pyarrow", "duckdb"),
            "ranges",
            "ranges: exact bytes, made rows by the client; parquet: rows made and filtered by the node; fetch: all "
            "files; pyarrow, duckdb: these libraries on the same files",
            always_spelled=True,
        ),
        "footers": Setting(("kept", "parsed"), "kept", "parsed: reader=parquet parses all footers for each query"),
        "technique": Setting(
            ("rows", "groups", "none"), "rows", "groups: row groups are left out, rows are not; none: all rows come"
        ),
        "row_group_rows": Setting(range(1, 2**31), GROUP_ROWS, "rows of a row group"),
        "file_groups": Setting(range(1, 2**20), FILE_GROUPS, "row groups of a file"),
    }
    maturity = Maturity(Stage.EXPERIMENTAL, "this project's own service; the files are ordinary Parquet", ours=True)
    capabilities = frozenset({Can.PROJECTION, Can.TYPES, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    besides_for: ClassVar = {"reader=duckdb": Besides(("duckdb",), "engines")}
    syncs_on_save = True

    def _checked(self, given: Any) -> dict[str, str | int | None]:
        values = super()._checked(given)
        reader = values["reader"]
        if values["footers"] == "parsed" and reader != "parquet":
            raise RefusedSetting(f"parquet: footers=parsed goes with reader=parquet, not reader={reader}")
        if values["technique"] != "rows" and reader not in ("ranges", "parquet"):
            raise RefusedSetting(f"parquet: technique={values['technique']} goes with reader=ranges and reader=parquet")
        return values

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._served: Served | None = None
        self._kept: Any = None

    @property
    def _group_rows(self) -> int:
        return int(self.values["row_group_rows"] or 0)

    @property
    def _file_rows(self) -> int:
        return self._group_rows * int(self.values["file_groups"] or 0)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Those of pyarrow's writer; where DuckDB reads, what it does not have either."""
        if self.values["reader"] == "duckdb":
            return (
                shared.CATEGORIES_OF_NULLS,
                DICTIONARY_AS_VALUES,
                shared.FLOAT16_AS_FLOAT32,
                shared.VECTORS_AS_LISTS,
                TIMESTAMPS_BY_DUCKDB,
            )
        return (shared.CATEGORIES_OF_NULLS, shared.DICTIONARY_OF_NUMBERS_AS_VALUES, SECONDS_AS_MS)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Where DuckDB reads, the first column of durations, or of a name that it does not give back."""
        import pyarrow.types as of

        if self.values["reader"] != "duckdb":
            return super().refusal(schema, rows)
        for field in schema:
            if of.is_duration(field.type):
                return f"DuckDB reads durations of Parquet as integers (column {field.name})"
            if not field.name or "\0" in field.name:
                return f"DuckDB does not give the name {field.name!r} of a column back"
        return refusals.of_names_alike(schema) or super().refusal(schema, rows)

    @property
    def offers(self) -> Offers:
        """Filters and aggregates by what is known of row groups."""
        return Offers(
            project=True,
            scan=frozenset(Kind),
            keeps_scans=True,
            aggregate=True,
            metadata=self.values["reader"] in ("ranges", "parquet") and self.values["technique"] == "rows",
            sifts={"rows": Sifts.ROWS, "groups": Sifts.GROUPS, "none": Sifts.NOTHING}[str(self.values["technique"])],
            group_rows=self._group_rows,
            file_rows=self._file_rows,
        )

    @property
    def is_served(self) -> bool:  # type: ignore[override]
        """Whether services can stand between: pyarrow and DuckDB read files here."""
        return self.values["reader"] in WAYS

    def load_library(self) -> None:
        """Import the library, its client, and DuckDB where that reads."""
        import pyarrow.dataset
        import pyarrow.parquet

        from formats.near_storage import conditions
        from libraries.near_storage import local, query
        from libraries.near_storage.client import connection
        from libraries.near_storage.parquet import compact
        from libraries.near_storage.predicates import tree
        from libraries.near_storage.storing import catalog, describing, filling, partitions

        self._arrow, self._parquet, self._datasets = pyarrow, pyarrow.parquet, pyarrow.dataset
        self._conditions, self._local, self._query, self._connection = conditions, local, query, connection
        self._compact, self._tree = compact, tree
        self._catalog, self._describing, self._filling, self._partitions = catalog, describing, filling, partitions
        if self.values["reader"] == "duckdb":
            import duckdb

            self._duckdb = duckdb

    # --- storing -----------------------------------------------------------------------------------------------

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the files, then store them as a node and its catalog would.

        Raises RefusedData for tables that near storage does not take.
        """
        from libraries.near_storage.errors import NearStorageError

        written = location / "written"
        written.mkdir(parents=True)
        rows = self._file_rows
        paths = []
        for start in range(0, max(table.num_rows, 1), rows):
            paths.append(written / f"part-{start // rows:05}.parquet")
            self._parquet.write_table(
                table.slice(start, rows),
                paths[-1],
                row_group_size=self.values["row_group_rows"],
                compression=self.values["codec"],
                compression_level=self.values["level"],
            )
        try:
            self._filling.fill(location, TABLE, paths)
            catalog = self._catalog.Catalog(location / CATALOG, 1)
            try:
                order = [partition.digest for partition in catalog.current(TABLE).partitions]
            finally:
                catalog.close()
        except NearStorageError as error:
            raise RefusedData(str(error)) from error
        shutil.rmtree(written)
        (location / ORDER).write_text(json.dumps(order))

    def stored(self, location: Path) -> Stored:
        """Codec and encodings of the first file, whose row groups must be as large as asked for."""
        footer = self._parquet.read_metadata(self._paths(location)[0])
        parquet_codecs.check_layout(
            footer,
            row_group_rows=self.values["row_group_rows"],
            page_index=False,
            dictionary=True,
            statistics=True,
        )
        return parquet_codecs.stored_of(footer)

    def _order(self, location: Path) -> list[str]:
        order: list[str] = json.loads((location / ORDER).read_text())
        return order

    def _paths(self, location: Path) -> list[Path]:
        """The files in the order of their rows."""
        return [location / NODE / f"{digest}{self._partitions.PARTITION}" for digest in self._order(location)]

    # --- serving -----------------------------------------------------------------------------------------------

    def data_of(self, location: Path) -> Path:
        """The node's files: the catalog writes into its own."""
        return location / NODE

    def services(self, location: Path) -> tuple[Service, ...]:
        """A catalog and a node."""
        if not self.is_served:
            return ()
        return (
            Service("catalog", (*_MODULE, "catalog", str(location))),
            Service("node", (*_MODULE, "node", str(location), "{catalog}", "{advertised}")),
        )

    def reach(self, served: Served) -> None:
        """From now on the stored copy is asked for at the catalog."""
        self._served = served

    def warm_up(self, location: Path) -> None:
        """One column in the way that is measured: by V1 of all files, of which the node then holds parsed footers; by
        others one row, because they hold none at the node."""
        client, reader = self._client(), str(self.values["reader"])
        try:
            first = client.schema(TABLE).names[:1]
            client.query(self._query.Query(TABLE, tuple(first), limit=None if reader == "parquet" else 1), WAYS[reader])
        finally:
            client.close()

    def _client(self) -> Any:
        assert self._served is not None
        return self._connection.connect(f"grpc://{self._served.addresses['catalog']}", self._served.token)

    # --- reading -----------------------------------------------------------------------------------------------

    def read(self, location: Path) -> pa.Table:
        """All rows of all columns."""
        handle = self.open(location)
        try:
            assert handle.project is not None
            return handle.project(self._schema(location).names)
        finally:
            handle.close()

    def _schema(self, location: Path) -> pa.Schema:
        return self._parquet.read_schema(self._paths(location)[0])

    def open(self, location: Path) -> Handle:
        """A client of the services, where they serve it; else what is known of the files, and none of their values.
        Footers are, unless each query parses them."""
        schema = self._schema(location)
        reader = str(self.values["reader"])
        if reader == "duckdb":
            return self._by_duckdb(location, schema)
        if reader == "pyarrow":
            return self._by_pyarrow(location)
        if self._served is not None and location.parent.name == TABLE:
            client = self._client()
            ask, close = client.query, client.close
        else:
            files = self._files(location)
            if self.values["footers"] == "kept":
                # As pyarrow and DuckDB do. Else a call that is the first to meet a file takes longer than others.
                files.keep_footers()
            ask, close = lambda *asked: files.query(*asked)[0], _nothing
        way, footers = WAYS[reader], "parsed" if self.values["footers"] == "parsed" else "cached"
        refilter = self.values["technique"] == "rows"

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            where = None
            if asked is not None and self.values["technique"] != "none":
                where = self._conditions.tree_of(asked, schema.field(asked.column).type)
            return ask(self._query.Query(TABLE, tuple(columns), where), way, footers, refilter)

        def aggregate(asked: Predicate, column: str) -> pa.Table:
            where = self._conditions.tree_of(asked, schema.field(asked.column).type)
            made = self._query.Aggregate
            functions = (made("count", None, "count"), *(made(name, column, name) for name in ("min", "max", "sum")))
            found = ask(self._query.Query(TABLE, (), where, functions), way, footers, refilter)
            return found.cast(self._arrow.schema([(name, self._arrow.int64()) for name in found.column_names]))

        return Handle(
            project=lambda columns: rows(None, columns),
            scan=rows,
            aggregate=aggregate if self.values["technique"] == "rows" else None,
            metadata=lambda files: self._metadata(location, files),
            close=close,
        )

    def _infos(self, location: Path) -> list[Any]:
        """What is kept of each file, in the order of their rows."""
        store = self._partitions.PartitionStore(location / NODE)
        try:
            return [store.info(digest) for digest in self._order(location)]
        finally:
            store.close()

    def _files(self, location: Path) -> Any:
        return self._local.LocalFiles.of(zip(self._paths(location), self._infos(location), strict=True))

    def _metadata(self, location: Path, files: int) -> pa.Table:
        """Compact of reader=ranges; of reader=parquet parsed footers, or their bytes where each query parses them."""
        order, paths = self._order(location), self._paths(location)
        held = [number % len(paths) for number in range(files)]
        if self.values["reader"] == "ranges":
            taken = [self._compact_of(location, order[number]) for number in held[: len(order)]]
            for number in held[len(order) :]:
                # Taken in anew each time. What is the same then takes no memory of its own until it is put together.
                taken[number] = self._compact_of(location, order[number])
            self._kept = self._compact.together([taken[number] for number in held])
            counts = [compact.rows.tolist() for compact in taken]
        elif self.values["footers"] == "kept":
            self._kept = [self._parquet.read_metadata(paths[number]) for number in held]
            counts = [
                [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
                for footer in self._kept[: len(paths)]
            ]
        else:
            infos = self._infos(location)
            self._kept = [_end(paths[number], infos[number].footer_bytes) for number in held]
            counts = [info.compact.rows.tolist() for info in infos]
        rows = [count for number in held for count in counts[number]]
        return self._arrow.table({"rows": self._arrow.array(rows, self._arrow.int64())})

    def _compact_of(self, location: Path, digest: str) -> Any:
        """Of one file, from its description."""
        described = (location / NODE / f"{digest}{self._partitions.INFO}").read_bytes()
        return self._describing.PartitionInfo.decode(described).compact

    def _by_pyarrow(self, location: Path) -> Handle:
        dataset = self._datasets.dataset([str(path) for path in self._paths(location)], format="parquet")
        threads = self.threads is None

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            met = None if asked is None else arrow_expression(asked)
            return dataset.to_table(columns=list(columns), filter=met, use_threads=threads)

        return Handle(project=lambda columns: rows(None, columns), scan=rows)

    def _by_duckdb(self, location: Path, schema: pa.Schema) -> Handle:
        config: dict[str, Any] = {} if self.threads is None else {"threads": self.threads}
        connection = self._duckdb.connect(":memory:", config=config)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET parquet_metadata_cache = true")
        relation = connection.read_parquet([str(path) for path in self._paths(location)])

        def filtered(asked: Predicate) -> Any:
            return relation.filter(sql_condition(asked, selected([asked.column], relation.columns)))

        def rows(asked: Predicate | None, columns: Sequence[str]) -> pa.Table:
            met = relation if asked is None else filtered(asked)
            return met.project(selected(columns, relation.columns)).to_arrow_table()

        def aggregate(asked: Predicate, column: str) -> pa.Table:
            name = selected([column], relation.columns)
            told = f"count(*) AS count, min({name}) AS min, max({name}) AS max, CAST(sum({name}) AS BIGINT) AS sum"
            return filtered(asked).aggregate(told).to_arrow_table()

        return Handle(
            project=lambda columns: rows(None, columns), scan=rows, aggregate=aggregate, close=connection.close
        )


def _end(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(-size_bytes, 2)
        return file.read()


def _nothing() -> None:
    pass


ENGINES = (ParquetNearStorage,)
