"""Parquet by near storage, this project's service that filters Parquet files where they are stored.

A stored copy consists of many Parquet files. Near storage skips row groups whose metadata rules out a match. The folder
of a copy has a folder for each of near storage's services: a catalog, which knows the files of a table, and one node,
which stores the files. If no services run, the same code reads the copy in this process. For comparison, pyarrow's data
sets and DuckDB can read the same files.
"""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import parquet_codecs
from adapters.contract import Besides, Can, Maturity, Native, Setting, Stage, Stored
from adapters.errors import RefusedData, RefusedSetting
from adapters.losses import Loss
from adapters.offers import Handle, Offers, Sifts
from adapters.predicate import Kind
from adapters.services import Served, Service
from formats.parquet.common import Parquet
from formats.parquet.near_storage_readers import CATALOG, NODE, ORDER, READERS, TABLE, Copy

if TYPE_CHECKING:
    import pyarrow as pa

    from libraries.near_storage.client.connection import Client

GROUP_ROWS, FILE_GROUPS = 10_000, 10
"""Default number of rows of a row group, and default number of row groups of a file."""
_MODULE = ("-m", "formats.parquet.near_storage_process")
_LIBRARIES = (
    *("pyarrow.dataset", "pyarrow.parquet", "formats.parquet.near_storage_filters"),
    *("libraries.near_storage.client.connection", "libraries.near_storage.local"),
    "libraries.near_storage.storing.local_import",
)


class ParquetNearStorage(Parquet):
    """Parquet by near storage's catalog, node and client. If no services run, the code of the services runs in this
    process."""

    engine = "near-storage"
    extra = "near-storage"
    distributions = ("format-bench", "pyarrow", "xxhash")
    native = Native.ARROW
    suffix = ".store"
    is_folder = True
    parts = "its catalog has one writer"
    settings: ClassVar = {
        **Parquet.settings,
        "reader": Setting(
            tuple(READERS),
            "ranges",
            "ranges: the client reads the needed bytes and decodes them; parquet: the node decodes and filters rows; "
            "fetch: the client reads whole files; pyarrow, duckdb: these libraries read the same files",
            always_spelled=True,
        ),
        "footers": Setting(
            ("kept", "parsed"), "kept", "parsed: with reader=parquet, each query parses the footers of all files"
        ),
        "technique": Setting(
            ("rows", "groups", "none"),
            "rows",
            "rows: a filter returns matching rows; groups: it only skips row groups; none: it returns all rows",
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
        reader = str(values["reader"])
        if values["footers"] == "parsed" and reader != "parquet":
            raise RefusedSetting(f"parquet: footers=parsed requires reader=parquet (got reader={reader})")
        if values["technique"] != "rows" and not READERS[reader].has_techniques:
            technique = values["technique"]
            raise RefusedSetting(
                f"parquet: technique={technique} requires reader=ranges or reader=parquet (got reader={reader})"
            )
        return values

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._reader = READERS[str(self.values["reader"])](self.values, self.threads)
        self._reached: tuple[Path, Served] | None = None

    @property
    def _group_rows(self) -> int:
        return int(self.values["row_group_rows"] or 0)

    @property
    def _file_rows(self) -> int:
        return self._group_rows * int(self.values["file_groups"] or 0)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Known changes to data by pyarrow, which writes the files, and by the reader that the setting `reader`
        selects."""
        return self._reader.losses

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return the reason why this data cannot be stored, or why the reader cannot return it; otherwise None."""
        return self._reader.refusal(schema) or super().refusal(schema, rows)

    @property
    def offers(self) -> Offers:
        """The operations that near storage supports. Filters and aggregates use the metadata of row groups."""
        return Offers(
            project=True,
            scan=frozenset(Kind),
            keeps_scans=True,
            aggregate=True,
            metadata=self._reader.has_techniques and self.values["technique"] == "rows",
            sifts={"rows": Sifts.ROWS, "groups": Sifts.GROUPS, "none": Sifts.NOTHING}[str(self.values["technique"])],
            group_rows=self._group_rows,
            file_rows=self._file_rows,
        )

    @property
    def is_served(self) -> bool:  # type: ignore[override]
        """Whether near storage's services read the copy. They do not if the reader is pyarrow or DuckDB."""
        return self._reader.way is not None

    def load_library(self) -> None:
        """Import the modules that save and read with these settings."""
        for name in (*_LIBRARIES, *self._reader.libraries):
            import_module(name)

    # --- storing -----------------------------------------------------------------------------------------------

    def save(self, table: pa.Table, location: Path) -> None:
        """Write Parquet files, and add them to the folders of a catalog and a node as these services would.

        Raises RefusedData for tables that near storage refuses."""
        import pyarrow.parquet as pq

        from libraries.near_storage.errors import NearStorageError
        from libraries.near_storage.storing.catalog import Catalog
        from libraries.near_storage.storing.local_import import fill

        written = location / "written"
        written.mkdir(parents=True)
        rows = self._file_rows
        paths = []
        for start in range(0, max(table.num_rows, 1), rows):
            paths.append(written / f"part-{start // rows:05}.parquet")
            pq.write_table(
                table.slice(start, rows),
                paths[-1],
                row_group_size=self.values["row_group_rows"],
                compression=self.values["codec"],
                compression_level=self.values["level"],
            )
        try:
            fill(location, TABLE, paths)
            catalog = Catalog(location / CATALOG, 1)
            try:
                order = [partition.digest for partition in catalog.current(TABLE).partitions]
            finally:
                catalog.close()
        except NearStorageError as error:
            raise RefusedData(str(error)) from error
        shutil.rmtree(written)
        (location / ORDER).write_text(json.dumps(order))

    def stored(self, location: Path) -> Stored:
        """Return the codec and the encodings of the first file.

        Raises AdapterError if its row groups do not have the number of rows that the settings require."""
        import pyarrow.parquet as pq

        footer = pq.read_metadata(Copy(location).paths[0])
        parquet_codecs.check_layout(
            footer, row_group_rows=self.values["row_group_rows"], page_index=False, dictionary=True, statistics=True
        )
        return parquet_codecs.stored_of(footer)

    # --- serving -----------------------------------------------------------------------------------------------

    def data_of(self, location: Path) -> Path:
        """Return the folder of the node's files, without the catalog's folder."""
        return location / NODE

    def services(self, location: Path) -> tuple[Service, ...]:
        """Return the services that serve the copy: a catalog and a node. Return none if the reader is pyarrow or
        DuckDB, because these libraries read the files themselves."""
        if not self.is_served:
            return ()
        return (
            Service("catalog", (*_MODULE, "catalog", str(location / CATALOG))),
            Service("node", (*_MODULE, "node", str(location / NODE), "{catalog}", "{advertised}")),
        )

    def reach(self, location: Path, served: Served) -> None:
        """Store the addresses of running services, so that later calls read the copy at `location` through them."""
        self._reached = location, served

    def warm_up(self, location: Path) -> None:
        """Read one column through the services, by the same access path that is measured.

        With reader=parquet all rows are read, so that the node has the parsed footers of all files in memory. With
        other readers, the node keeps no footers, so one row is enough.
        """
        from libraries.near_storage.query import Query

        client = self._client(location)
        assert client is not None
        with client:
            columns = tuple(client.schema(TABLE).names[:1])
            client.query(Query(TABLE, columns, limit=self._reader.warm_up_rows), self._reader.way)

    # --- reading -----------------------------------------------------------------------------------------------

    def read(self, location: Path) -> pa.Table:
        """Read all rows of all columns."""
        handle = self.open(location)
        try:
            assert handle.project is not None
            return handle.project(Copy(location).schema().names)
        finally:
            handle.close()

    def open(self, location: Path) -> Handle:
        """Return a handle that is connected to the services of this copy. If no services run, read the metadata of the
        copy's files, but no values."""
        return self._reader.open(Copy(location), self._client(location))

    def _client(self, location: Path) -> Client | None:
        """Return a client that is connected to the services of this copy; None if no services run."""
        if self._reached is None or self._reached[0] != location:
            return None
        from libraries.near_storage.client.connection import connect

        served = self._reached[1]
        return connect(f"grpc://{served.addresses['catalog']}", served.token)
