"""HDF5 by PyTables, in a layout that this project defines: a table of rows, which has a field for each column.

HDF5 tables support neither nulls nor texts of variable length. A column may therefore have additional fields: one that
states whether the value exists, and one with the length of a text. The columns' names and types are stored next to the
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Can, Maturity, Native, Stage, Stored, TabularFormat
from adapters.errors import RefusedData
from adapters.offers import Handle, Offers, Reach
from adapters.predicate import Kind, Predicate
from formats.shared import pandas_losses as shared
from formats.shared.rows import checked

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_TABLE, _SCHEMA = "/data", "/schema"


class Pytables(TabularFormat):
    """HDF5 by PyTables' create_table, and the methods with which its class Table reads."""

    format = "hdf5-pytables"
    engine = "pytables"
    title = "HDF5 by PyTables"
    distributions = ("tables", "pyarrow")
    extra = "hdf5"
    native = Native.ARROW
    suffix = ".h5"
    parts = "a table is one node of one file with one writer"
    maturity = Maturity(
        Stage.YOUNG, "HDF5 is a standard, but the meaning of such a table's fields is defined only here", ours=True
    )
    capabilities: ClassVar = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE, Can.NO_PICKLE})
    offers = Offers(
        project=True, take=Reach.ROWS, scan=frozenset({Kind.RANGE, Kind.EQUAL, Kind.IN, Kind.NULL}), append=True
    )
    losses = (shared.CATEGORIES_OF_NULLS, shared.DICTIONARY_AS_VALUES)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has columns of types that no field of an HDF5 table can store."""
        for field in schema:
            if not _has_field(_plain(field.type)):
                return f"a table of PyTables has no type for {field.type} (column {field.name})"
        return super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import PyTables and numexpr. With threads=1, numexpr evaluates conditions on one thread only."""
        import numexpr
        import numpy
        import pyarrow
        import tables

        self._tables, self._numpy, self._arrow = tables, numpy, pyarrow
        if self.threads == 1:
            numexpr.set_num_threads(1)

    def save(self, table: pa.Table, location: Path) -> None:
        """Write all rows at once. Raises RefusedData for types that no field of an HDF5 table can store."""
        if reason := self.refusal(table.schema, table.num_rows):
            raise RefusedData(reason)
        fields = self._fields(table)
        schema = self._arrow.schema([(field.name, _plain(field.type)) for field in table.schema])
        with self._tables.open_file(str(location), "w") as file:
            described = self._numpy.frombuffer(schema.serialize(), self._numpy.uint8)
            file.create_array("/", _SCHEMA[1:], described)
            rows = self._structured(fields, self._numpy.dtype([(name, *_shape(data)) for name, data in fields.items()]))
            stored = file.create_table("/", _TABLE[1:], rows.dtype, expectedrows=max(len(rows), 1))
            stored.append(rows)

    def append(self, table: pa.Table, location: Path) -> None:
        """Append rows.

        Raises RefusedData for texts longer than all texts that `save` stored in the column, and for nulls in a column
        in which `save` stored no nulls."""
        fields = self._fields(table)
        with self._tables.open_file(str(location), "a") as file:
            stored = file.get_node(_TABLE)
            for name, data in fields.items():
                if name not in stored.dtype.names:
                    raise RefusedData(
                        f"nulls cannot be appended to column {table.column_names[int(name[1:])]}, which was created "
                        "without nulls"
                    )
                most_bytes = stored.dtype[name].itemsize
                if data.dtype.kind == "S" and data.dtype.itemsize > most_bytes:
                    raise RefusedData(
                        f"a value of {data.dtype.itemsize:,} bytes cannot be appended to column "
                        f"{table.column_names[int(name[1:])]}, which was created for at most {most_bytes:,} bytes"
                    )
            for name in set(stored.dtype.names) - fields.keys():
                fields[name] = self._numpy.ones(table.num_rows, bool)
            stored.append(self._structured(fields, stored.dtype))

    def read(self, location: Path) -> pa.Table:
        """Read all rows."""
        with self._tables.open_file(str(location)) as file:
            schema = self._schema(file)
            rows = file.get_node(_TABLE).read()
        return self._table(rows, schema, schema.names)

    def open(self, location: Path) -> Handle:
        """Return a handle that keeps the file open."""
        file = self._tables.open_file(str(location))
        schema, stored = self._schema(file), file.get_node(_TABLE)

        def project(columns: Sequence[str]) -> pa.Table:
            asked = [schema.get_field_index(name) for name in columns]
            if -1 in asked:
                missing = columns[asked.index(-1)]
                raise KeyError(f"the table has no column {missing!r}; its columns: {', '.join(schema.names)}")
            names = [name for name in stored.dtype.names if int(name[1:]) in asked]
            return self._table({name: stored.read(field=name) for name in names}, schema, columns)

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            return self._table(stored.read_coordinates(checked(numbers, stored.nrows)), schema, columns)

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            condition, values = self._condition(predicate, schema, stored.dtype.names)
            rows = stored.read_where(condition, values) if condition else stored.read(0, 0)
            return self._table(rows, schema, columns)

        return Handle(project=project, take=take, scan=scan, close=file.close)

    def stored(self, location: Path) -> Stored:
        """Return the number of rows of a chunk, and the number of bytes of a row."""
        with self._tables.open_file(str(location)) as file:
            stored = file.get_node(_TABLE)
            return Stored(details={"chunk rows": str(stored.chunkshape[0]), "row bytes": str(stored.rowsize)})

    # --- fields ------------------------------------------------------------------------------------------------------

    def _schema(self, file: Any) -> pa.Schema:
        return self._arrow.ipc.read_schema(self._arrow.py_buffer(file.get_node(_SCHEMA).read().tobytes()))

    def _structured(self, fields: dict[str, np.ndarray], dtype: np.dtype) -> np.ndarray:
        rows = self._numpy.zeros(len(next(iter(fields.values()))), dtype)
        for name, data in fields.items():
            rows[name] = data
        return rows

    def _fields(self, table: pa.Table) -> dict[str, np.ndarray]:
        """Return the numpy array of each field of the table, by the field's name.

        Names have the number of the column. Column 0 has the field c0 with the values. If needed, it also has n0 with
        the lengths of texts, and v0, which is true in rows that are not null."""
        fields = {}
        for place, column in enumerate(table.columns):
            whole = column.cast(_plain(column.type)).combine_chunks()
            if column.null_count:
                fields[f"v{place}"] = whole.is_valid().to_numpy(zero_copy_only=False)
            fields |= {f"{part}{place}": data for part, data in self._parts(whole).items()}
        return fields

    def _parts(self, column: pa.Array) -> dict[str, np.ndarray]:
        import pyarrow.types as of

        kind = column.type
        if of.is_fixed_size_list(kind):
            empty = self._arrow.scalar([0] * kind.list_size, kind)
            whole = column.fill_null(empty) if column.null_count else column
            if whole.flatten().null_count:
                raise RefusedData("a table of PyTables cannot store nulls inside vectors")
            return {"c": whole.flatten().to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)}
        if _is_bytes(kind):
            values = [value or b"" for value in column.cast(self._arrow.large_binary()).to_pylist()]
            lengths = self._numpy.fromiter(map(len, values), self._numpy.int32, len(values))
            return {"c": self._numpy.array(values, f"S{max(lengths.max(initial=0), 1)}"), "n": lengths}
        if of.is_null(kind):
            return {"c": self._numpy.zeros(len(column), bool)}
        if of.is_boolean(kind):
            return {"c": column.fill_null(False).to_numpy(zero_copy_only=False)}
        numbers = column if of.is_integer(kind) or of.is_floating(kind) else column.view(_number(kind))
        return {"c": numbers.fill_null(0).to_numpy(zero_copy_only=False)}

    def _table(self, rows: Any, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
        """Return the given columns as an Arrow table. `rows` has the fields of the stored table: as a structured array,
        or as a dict of arrays."""
        names = rows.keys() if isinstance(rows, dict) else rows.dtype.names
        made = []
        for column in columns:
            place = schema.names.index(column)
            missing = ~rows[f"v{place}"] if f"v{place}" in names else None
            lengths = rows[f"n{place}"] if f"n{place}" in names else None
            made.append(self._column(rows[f"c{place}"], lengths, missing, schema.field(place).type))
        return self._arrow.table(made, schema=self._arrow.schema([schema.field(name) for name in columns]))

    def _column(
        self, data: np.ndarray, lengths: np.ndarray | None, missing: np.ndarray | None, kind: pa.DataType
    ) -> pa.Array:
        import pyarrow.types as of

        if of.is_null(kind):
            return self._arrow.nulls(len(data))
        if of.is_fixed_size_list(kind):
            values = self._arrow.array(data.reshape(-1), kind.value_type)
            mask = None if missing is None else self._arrow.array(missing)
            return self._arrow.FixedSizeListArray.from_arrays(values, kind.list_size, mask=mask)
        if lengths is not None:
            width = data.dtype.itemsize
            letters = self._numpy.ascontiguousarray(data).view(self._numpy.uint8).reshape(-1, width)
            inside = self._numpy.arange(width) < lengths[:, None]
            offsets = self._numpy.concatenate([[0], self._numpy.cumsum(lengths, dtype=self._numpy.int64)])
            buffers = [None, self._arrow.py_buffer(offsets), self._arrow.py_buffer(letters[inside])]
            whole = self._arrow.Array.from_buffers(self._arrow.large_binary(), len(data), buffers)
            if missing is not None:
                whole = self._arrow.compute.if_else(self._arrow.array(~missing), whole, None)
            return whole.cast(kind)
        number = kind if of.is_boolean(kind) or of.is_integer(kind) or of.is_floating(kind) else _number(kind)
        array = self._arrow.array(self._numpy.ascontiguousarray(data), number, mask=missing)
        return array if number == kind else array.view(kind)

    def _condition(self, predicate: Predicate, schema: pa.Schema, names: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Return the condition in numexpr's syntax, and the values of its variables.

        The condition is an empty string if no row can meet it."""
        place = schema.names.index(predicate.column)
        kind = schema.field(place).type
        has_nulls = f"v{place}" in names
        if predicate.kind is Kind.NULL:
            return (f"~v{place}" if has_nulls else ""), {}
        if kind == self._arrow.uint64():
            raise RefusedData("PyTables cannot test conditions on columns of the type uint64")
        values: dict[str, Any] = {}
        tests = []
        for number, value in enumerate(predicate.present):
            scalar = self._arrow.scalar(value, kind)
            if _is_bytes(kind):
                given = scalar.as_py().encode() if isinstance(value, str) else scalar.as_py()
                values |= {f"x{number}": given, f"y{number}": len(given)}
                tests.append(f"((c{place} == x{number}) & (n{place} == y{number}))")
            else:
                values[f"x{number}"] = self._parts(self._arrow.array([value], kind))["c"][0]
                tests.append(f"(c{place} == x{number})")
        if predicate.kind is Kind.RANGE:
            tests = [f"((c{place} >= x0) & (c{place} < x1))"]
        met = " | ".join(tests)
        return (f"v{place} & ({met})" if has_nulls and met else met), values


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values for a dictionary type, and other types unchanged."""
    import pyarrow.types as of

    return kind.value_type if of.is_dictionary(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    tests = (of.is_string, of.is_large_string, of.is_string_view, of.is_binary, of.is_large_binary)
    return any(is_it(kind) for is_it in tests)


def _number(kind: pa.DataType) -> pa.DataType:
    """Return the type of the integers that represent values of `kind`: dates, times, timestamps or durations."""
    import pyarrow as pa

    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _has_field(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    if of.is_fixed_size_list(kind):
        return bool(of.is_integer(kind.value_type) or of.is_floating(kind.value_type))
    tests = (of.is_integer, of.is_floating, of.is_boolean, of.is_date, of.is_time, of.is_timestamp, of.is_duration)
    return _is_bytes(kind) or any(is_it(kind) for is_it in (*tests, of.is_null))


def _shape(data: np.ndarray) -> tuple[Any, ...]:
    """Return the type of a field for numpy: its dtype, and for vectors also the number of values in a row."""
    return (data.dtype, data.shape[1:]) if data.ndim > 1 else (data.dtype,)


ENGINES = (Pytables,)
