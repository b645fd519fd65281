"""A table as a `pyarrow.dataset.Dataset`: DuckDB, Polars and pyarrow push columns and filters into it by themselves.

A filter is translated and sent to the nodes as far as it can be. What cannot be is applied here to what comes, exactly
as pyarrow means it: engines that read a Dataset rely on exact filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from libraries.near_storage.client.executor import Executor, Options
from libraries.near_storage.predicates import expression_calls
from libraries.near_storage.predicates.expressions import translate
from libraries.near_storage.query import Aggregate, Query
from libraries.near_storage.serving.protocol import Way

BY_OURSELVES = "this pyarrow function bypasses the Dataset's own methods; use its scanner, to_table or to_batches"

Columns = list[str] | dict[str, pc.Expression] | None


class NearStorageDataset(ds.UnionDataset):
    """One version of a table, read where it is stored. Made by `Client.dataset`, which must stay open.

    All methods are those of `pyarrow.dataset.Dataset`; rows come in stored order. Errors are those of `Client.answer`;
    StaleError when the version was replaced and its grace is over: make a new Dataset then. To pyarrow's own C++ it is
    a Dataset that cannot be read, so that what bypasses these methods is an error, and neither a crash nor an answer.
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
        """Not to be called by users, see `Client.dataset`. `options` name the version."""
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
        """The columns."""
        return self._shown

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns as they are stored; pyarrow asks fragments for it."""
        return self._table_schema

    @property
    def partition_expression(self) -> pc.Expression:
        """What holds for all rows: nothing is promised."""
        return pc.scalar(True)

    @property
    def children(self) -> list[ds.Dataset]:
        """Partitions, each as a Dataset."""
        return list(self.get_fragments())

    def __repr__(self) -> str:
        return f"<NearStorageDataset {self._table}, version {self._options.version}>"

    def __reduce__(self) -> NoReturn:
        """A connection cannot be pickled."""
        raise TypeError("a Dataset of near storage cannot be pickled: give workers the endpoints (client.cluster)")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """As `__reduce__`."""
        self.__reduce__()

    # --- other views of it -------------------------------------------------------------------------------

    def filter(self, expression: pc.Expression) -> NearStorageDataset:
        """The rows for which the expression, and what was filtered by before, is true."""
        return self._view(filter=_both(self._filter, expression))

    def replace_schema(self, schema: pa.Schema) -> NearStorageDataset:
        """The same rows with these columns, which must be among those that there are. TypeError if they are not."""
        for field in schema:
            if self._table_schema.get_field_index(field.name) < 0:
                raise TypeError(f"no column {field.name!r} in table {self._table}")
            if not self._table_schema.field(field.name).type.equals(field.type):
                raise TypeError(
                    f"column {field.name!r} is {self._table_schema.field(field.name).type}, not {field.type}"
                )
        return self._view(schema=schema)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[NearStorageDataset]:
        """The partitions that may have rows for which the filter is true, each as a Dataset of its own."""
        wanted = _both(self._filter, filter)
        query = Query(self._table, where=translate(wanted, self._table_schema).predicate)
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
        """A Scanner that reads once: as many columns and row groups as are needed for `columns` and `filter`.

        Other options are pyarrow's; those that are about reading files say nothing here.
        """
        shown = self._shown.names if columns is None else columns
        wanted = _both(self._filter, filter)
        loaded = self._loaded(shown, wanted)
        translated = translate(wanted, self._table_schema)
        query = Query(self._table, tuple(loaded.names), translated.predicate)
        return ds.Scanner.from_batches(
            self._batches(query),
            schema=loaded,
            columns=shown,
            # The nodes have done it all: pyarrow would refuse some of it, as views of text, or int64 beside a fraction.
            filter=None if translated.complete else wanted,
            batch_size=batch_size,
            use_threads=options.get("use_threads", True),
            memory_pool=options.get("memory_pool"),
        )

    def to_table(
        self, columns: Columns = None, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any
    ) -> pa.Table:
        """The rows as a table."""
        return self.scanner(columns, filter, batch_size, **options).to_table()

    def to_batches(
        self, columns: Columns = None, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows as they come."""
        return self.scanner(columns, filter, batch_size, **options).to_batches()

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int = 131_072,
        **options: Any,
    ) -> pa.Table:
        """The first rows. The nodes stop early if they understand the whole filter."""
        wanted = _both(self._filter, filter)
        translated = translate(wanted, self._table_schema)
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
        """Rows by their numbers. All row groups that the filter leaves are read for it."""
        return self.to_table(columns, filter, batch_size, **options).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, batch_size: int = 131_072, **options: Any) -> int:
        """How many rows there are; the nodes count if they understand the whole filter."""
        wanted = _both(self._filter, filter)
        translated = translate(wanted, self._table_schema)
        if not translated.complete:
            return self.scanner([], filter, batch_size, **options).count_rows()
        query = Query(self._table, (), translated.predicate, (Aggregate("count", None, "rows"),))
        return self._executor.answer(query, self._options).table["rows"][0].as_py()

    def sort_by(self, sorting: str | list[tuple[str, str]], **options: Any) -> ds.InMemoryDataset:
        """All rows, in memory, sorted."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, keys: str | list[str], *arguments: Any, **options: Any) -> ds.Dataset:
        """All rows of both, in memory, joined as `pyarrow.Table.join` does it."""
        return ds.InMemoryDataset(self.to_table().join(right_dataset.to_table(), keys, *arguments, **options))

    def join_asof(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.Dataset:
        """All rows of both, in memory, joined as `pyarrow.Table.join_asof` does it."""
        return ds.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *arguments, **options))

    # --- inside ------------------------------------------------------------------------------------------

    def _view(
        self,
        options: Options | None = None,
        schema: pa.Schema | None = None,
        filter: pc.Expression | None = None,
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
        """The catalog is asked when the first batch is."""
        yield from self._executor.rows(self._executor.ask(query, self._options))

    def _loaded(self, shown: Sequence[str] | dict[str, pc.Expression], wanted: pc.Expression | None) -> pa.Schema:
        """The columns that are needed: those that are shown and those of the filter; all if they cannot be told."""
        expressions = [*(shown.values() if isinstance(shown, dict) else ()), *([] if wanted is None else [wanted])]
        names = frozenset() if isinstance(shown, dict) else frozenset(shown)
        for expression in expressions:
            found = _names(expression)
            if found is None:
                return self._table_schema
            names |= found
        needed = [field for field in self._table_schema if field.name in names]
        # Rows without columns are counted by one of few bytes.
        return pa.schema(needed or sorted(self._table_schema, key=_width)[:1])


def dataset(executor: Executor, table: str, way: Way | None) -> NearStorageDataset:
    """The current version of a table."""
    asked = executor.ask(Query(table, columns=(), limit=0), Options())
    return NearStorageDataset(executor, table, Options(way=way, version=asked.plan.version), asked.schema)


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _names(expression: pc.Expression) -> frozenset[str] | None:
    """The top-level columns that an expression looks at; None if that cannot be told."""
    root = expression_calls.read(expression)
    if root is None:
        return None
    names: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, expression_calls.Field):
            names.add(node.name)
        elif isinstance(node, expression_calls.Call):
            inside = node.function == expression_calls.NESTED
            waiting += node.arguments[:1] if inside else node.arguments
    return frozenset(names)


def _width(field: pa.Field) -> int:
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1 << 20


class _NoFiles(fs.FileSystemHandler):
    """A file system that has nothing to read: what pyarrow's C++ finds behind the Dataset."""

    def get_type_name(self) -> str:
        """Its name."""
        return "near-storage"

    def normalize_path(self, path: str) -> str:
        """Any path is fine."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Everything is a file, until one opens it."""
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
