"""A table as a `pyarrow.dataset.Dataset`. DuckDB, Polars and pyarrow push column selections and filters down to the
Dataset.

The nodes apply as much of a filter as they support. This module applies the rest with pyarrow's semantics, because
engines that read a Dataset rely on exact filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from libraries.filters.expression_calls import names_in
from libraries.near_storage.client.executor import Executor, Options
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Aggregate, Query
from libraries.near_storage.serving.protocol import Way

BY_OURSELVES = (
    "this pyarrow function bypasses the Dataset's own methods; use the Dataset's scanner, to_table or to_batches"
)

Columns = list[str] | dict[str, pc.Expression] | None


class NearStorageDataset(ds.UnionDataset):
    """One version of a table on the storage nodes. Created by `Client.dataset`; the client must stay open.

    The methods are the methods of `pyarrow.dataset.Dataset`; rows come in stored order. They raise the same errors as
    `Client.answer`. After a StaleError, make a new Dataset: this version was replaced and its grace period is over. To
    pyarrow's C++ code the Dataset is unreadable. Functions that bypass these methods therefore raise an error instead
    of crashing or returning wrong rows.
    """

    def __init__(
        self,
        executor: Executor,
        table: str,
        options: Options,
        table_schema: pa.Schema,
        schema: pa.Schema | None = None,
        filter: pc.Expression | None = None,
    ) -> None:
        """Make a Dataset of the version that `options` names. Users call `Client.dataset` instead."""
        shown = table_schema if schema is None else schema
        super().__init__(shown, [_unreadable(shown)])
        self._executor = executor
        self._table = table
        self._options = options
        self._table_schema = table_schema
        self._shown = shown
        self._filter = filter

    # --- what it is --------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The columns of this Dataset."""
        return self._shown

    @property
    def physical_schema(self) -> pa.Schema:
        """All columns of the table. pyarrow requests this property from fragments."""
        return self._table_schema

    @property
    def partition_expression(self) -> pc.Expression:
        """Return the expression `true`, because no condition is known to hold for all rows."""
        return pc.scalar(True)

    @property
    def children(self) -> list[ds.Dataset]:
        """The partitions, each as a Dataset."""
        return list(self.get_fragments())

    def __repr__(self) -> str:
        return f"<NearStorageDataset {self._table}, version {self._options.version}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to pickle a connection."""
        raise TypeError(
            "a near storage Dataset cannot be pickled: send endpoints to the workers instead (client.cluster.endpoints)"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to pickle, as `__reduce__`."""
        self.__reduce__()

    # --- other views of it -------------------------------------------------------------------------------

    def filter(self, expression: pc.Expression) -> NearStorageDataset:
        """Return a Dataset of the rows for which the expression and all earlier filters are true."""
        return self._view(filter=_both(self._filter, expression))

    def replace_schema(self, schema: pa.Schema) -> NearStorageDataset:
        """Return a Dataset with these columns of the table. Raises TypeError if the table has no such column, or if the
        column has another type."""
        for field in schema:
            if self._table_schema.get_field_index(field.name) < 0:
                raise TypeError(f"no column {field.name!r} in table {self._table}")
            if not self._table_schema.field(field.name).type.equals(field.type):
                raise TypeError(
                    f"column {field.name!r} has type {self._table_schema.field(field.name).type} in the table, but "
                    f"{field.type} in the given schema"
                )
        return self._view(schema=schema)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[NearStorageDataset]:
        """Yield the partitions that may have rows for which the filter is true, each as a Dataset."""
        wanted = _both(self._filter, filter)
        query = Query(self._table, where=wire.translated(wanted, self._table_schema).predicate)
        asked = self._executor.ask(query, self._options)
        positions = sorted(piece.position for source in asked.sources for piece in source.share.pieces)
        for position in positions:
            options = Options(way=self._options.way, version=self._options.version, positions=(position,))
            yield self._view(options=options)

    def _get_fragments(self, filter: pc.Expression | None) -> Iterator[NearStorageDataset]:
        return self.get_fragments(filter)

    # --- its rows ----------------------------------------------------------------------------------------

    def scanner(
        self, columns: Columns = None, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any
    ) -> ds.Scanner:
        """Return a single-use Scanner that reads only the columns and row groups that `columns` and `filter` need.

        Other options are pyarrow's options. Options about reading files have no effect.
        """
        shown = self._shown.names if columns is None else columns
        wanted = _both(self._filter, filter)
        loaded = self._loaded(shown, wanted)
        translated = wire.translated(wanted, self._table_schema)
        query = Query(self._table, tuple(loaded.names), translated.predicate)
        return ds.Scanner.from_batches(
            self._batches(query),
            schema=loaded,
            columns=shown,
            # If the nodes apply the whole filter, pyarrow does not apply it again. pyarrow would refuse some filters,
            # such as filters on string views.
            filter=None if translated.complete else wanted,
            batch_size=batch_size,
            use_threads=options.get("use_threads", True),
            memory_pool=options.get("memory_pool"),
        )

    def to_table(
        self, columns: Columns = None, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any
    ) -> pa.Table:
        """Return the rows as a table."""
        return self.scanner(columns, filter, batch_size, **options).to_table()

    def to_batches(
        self, columns: Columns = None, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they arrive."""
        return self.scanner(columns, filter, batch_size, **options).to_batches()

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int = 131_072,
        **options: Any,
    ) -> pa.Table:
        """Return the first rows. The nodes stop early if they support the whole filter."""
        wanted = _both(self._filter, filter)
        translated = wire.translated(wanted, self._table_schema)
        if not translated.complete or num_rows < 0:
            return self.scanner(columns, filter, batch_size, **options).head(num_rows)
        shown = self._shown.names if columns is None else columns
        loaded = self._loaded(shown, wanted)
        query = Query(self._table, tuple(loaded.names), translated.predicate, limit=num_rows)
        batches = self._batches(query)
        return ds.Scanner.from_batches(batches, schema=loaded, columns=shown).to_table()

    def take(
        self,
        indices: pa.Array,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int = 131_072,
        **options: Any,
    ) -> pa.Table:
        """Return the rows with these numbers. Reads all row groups that remain after pruning."""
        return self.to_table(columns, filter, batch_size, **options).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any) -> int:
        """Count the rows. The nodes count if they support the whole filter."""
        wanted = _both(self._filter, filter)
        translated = wire.translated(wanted, self._table_schema)
        if not translated.complete:
            return self.scanner([], filter, batch_size, **options).count_rows()
        query = Query(self._table, (), translated.predicate, (Aggregate("count", None, "rows"),))
        return self._executor.answer(query, self._options).table["rows"][0].as_py()

    def sort_by(self, sorting: str | list[tuple[str, str]], **options: Any) -> ds.InMemoryDataset:
        """Return all rows, sorted in memory."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, keys: str | list[str], *arguments: Any, **options: Any) -> ds.Dataset:
        """Join all rows of both datasets in memory, like `pyarrow.Table.join`."""
        return ds.InMemoryDataset(self.to_table().join(right_dataset.to_table(), keys, *arguments, **options))

    def join_asof(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.Dataset:
        """Join all rows of both datasets in memory, like `pyarrow.Table.join_asof`."""
        return ds.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *arguments, **options))

    # --- inside ------------------------------------------------------------------------------------------

    def _view(
        self, options: Options | None = None, schema: pa.Schema | None = None, filter: pc.Expression | None = None
    ) -> NearStorageDataset:
        return NearStorageDataset(
            self._executor,
            self._table,
            self._options if options is None else options,
            self._table_schema,
            self._shown if schema is None else schema,
            self._filter if filter is None else filter,
        )

    def _batches(self, query: Query) -> Iterator[pa.RecordBatch]:
        """Yield batches; ask the catalog only when the first batch is requested."""
        yield from self._executor.rows(self._executor.ask(query, self._options))

    def _loaded(self, shown: Sequence[str] | dict[str, pc.Expression], wanted: pc.Expression | None) -> pa.Schema:
        """Return the columns that the answer and the filter need. Return all columns if it is unknown which columns an
        expression reads."""
        expressions = [*(shown.values() if isinstance(shown, dict) else ()), *([] if wanted is None else [wanted])]
        names = frozenset() if isinstance(shown, dict) else frozenset(shown)
        for expression in expressions:
            found = names_in(expression)
            if found is None:
                return self._table_schema
            names |= found
        needed = [field for field in self._table_schema if field.name in names]
        # A scan without columns still needs a column to count rows, so read the narrowest column.
        return pa.schema(needed or sorted(self._table_schema, key=_width)[:1])


def dataset(executor: Executor, table: str, way: Way | None) -> NearStorageDataset:
    """Return the current version of a table as a Dataset."""
    asked = executor.ask(Query(table, columns=(), limit=0), Options())
    return NearStorageDataset(executor, table, Options(way=way, version=asked.plan.version), asked.schema)


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _width(field: pa.Field) -> int:
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1 << 20


class _NoFiles(fs.FileSystemHandler):
    """A file system in which no file can be opened. pyarrow's C++ code sees only this file system behind the Dataset,
    so it cannot read the Dataset by itself."""

    def get_type_name(self) -> str:
        """Return the name of this file system type."""
        return "near-storage"

    def normalize_path(self, path: str) -> str:
        """Accept any path."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Report every path as a file; opening one fails."""
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def _refused(self, *arguments: object, **options: object) -> NoReturn:
        raise NotImplementedError(BY_OURSELVES)

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refused
    delete_file = move = copy_file = open_input_stream = open_input_file = _refused
    open_output_stream = open_append_stream = _refused


def _unreadable(schema: pa.Schema) -> ds.FileSystemDataset:
    nothing = fs.PyFileSystem(_NoFiles())
    format = ds.ParquetFileFormat()
    return ds.FileSystemDataset([format.make_fragment("table", filesystem=nothing)], schema, format, nothing)
