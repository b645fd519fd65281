"""The types in which a user's table is kept: those of docs/target.md, and lists, structs and maps of them.

Others that hold the same values become one of these (views and large types, extensions, and inside of nested columns
dictionaries and half floats); what has no such type is refused by column and type. Metadata is dropped: pandas' own is
not to be trusted. This module does not know from what file a table comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.refusal import Refused

BATCH_BYTES = 32 << 20
"""Larger batches are cut."""

MOST_COLUMNS = 1 << 14
"""As many as a sheet of Excel has. Readers, formats and reports take time and memory for each column, however few rows
there are: a hundred thousand take minutes and gigabytes."""

_DECIMAL_DIGITS = 38
_CODES = (pa.int8(), pa.int16(), pa.int32())
"""Types of codes that pandas gives categories, or pyarrow."""
_AS_THEY_ARE = (pt.is_boolean, pt.is_integer, pt.is_float32, pt.is_float64, pt.is_date32, pt.is_time, pt.is_duration)


def column_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which a column of this type is kept, itself where it can be; None where there is none.

    Categories stay categories where they are text or numbers; others become the plain values that they stand for, as
    few libraries can hold them otherwise.
    """
    if pt.is_float16(kind):
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return column_type(kind.storage_type)
    if pt.is_run_end_encoded(kind):
        return column_type(kind.value_type)
    if not pt.is_dictionary(kind):
        return kept_type(kind)
    values = column_type(kind.value_type)
    if values is None or not (pt.is_string(values) or pt.is_integer(values) or values in (pa.float32(), pa.float64())):
        return values
    codes = kind.index_type if kind.index_type in _CODES else pa.int32()
    return pa.dictionary(codes, values, ordered=kind.ordered)


def kept_type(kind: pa.DataType) -> pa.DataType | None:
    """The type in which values of this type are kept inside of a column, itself where it can be; None where there is
    none."""
    if any(is_so(kind) for is_so in _AS_THEY_ARE) or pt.is_timestamp(kind):
        return kind
    if pt.is_null(kind):
        # pandas reads a column without any value so.
        return pa.float64()
    if pt.is_float16(kind):
        return pa.float32()
    if pt.is_date64(kind):
        return pa.date32()
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= _DECIMAL_DIGITS else None
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return kept_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return kept_type(kind.storage_type)
    return _kept_nested(kind)


def _kept_nested(kind: pa.DataType) -> pa.DataType | None:
    if pt.is_map(kind):
        key, item = kept_type(kind.key_type), kept_type(kind.item_type)
        return pa.map_(key, item) if key is not None and item is not None else None
    if pt.is_struct(kind):
        inside = [(kind.field(place).name, kept_type(kind.field(place).type)) for place in range(kind.num_fields)]
        return pa.struct(inside) if inside and all(held is not None for _, held in inside) else None
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        item = kept_type(kind.value_type)
        return pa.list_(item) if item is not None else None
    return None


def kept_schema(found: pa.Schema) -> pa.Schema:
    """The schema in which a table of this one is kept. Raises Refused, naming the column."""
    check_number(sum(_columns_in(column.type) for column in found))
    check_names(found.names)
    fields = []
    for column in found:
        held = column_type(column.type)
        if held is None:
            raise Refused(
                f"column {column.name!r} is {column.type}, which is not measured",
                "leave the column out, or store it as another type",
            )
        fields.append(pa.field(column.name, held))
    return pa.schema(fields)


def _columns_in(kind: pa.DataType) -> int:
    """How many columns a column is where it is taken apart: one for each field of a struct."""
    if pt.is_struct(kind):
        return sum(_columns_in(kind.field(place).type) for place in range(kind.num_fields))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _columns_in(kind.value_type)
    return _columns_in(kind.key_type) + _columns_in(kind.item_type) if pt.is_map(kind) else 1


def check_number(columns: int) -> None:
    """Raises Refused for more columns than are taken; fields of structs count as columns. Call it as soon as the number
    is known: whatever comes next costs something for each."""
    if columns > MOST_COLUMNS:
        raise Refused(
            f"has {columns:,} columns, and at most {MOST_COLUMNS:,} are taken",
            "leave columns out, or store them as rows: one for the name of the column, one for its value",
        )


def check_names(names: Sequence[str]) -> None:
    """Raises Refused for too many columns or none, and for a name that two columns have."""
    check_number(len(names))
    if not names:
        raise Refused("holds no columns", "name a file with a table in it")
    seen: set[str] = set()
    for number, name in enumerate(names, start=1):
        if name in seen:
            raise Refused(
                f"column {number} has the name {name!r}, as column {list(names).index(name) + 1} has",
                "give each column a name of its own",
            )
        seen.add(name)


def named(names: Sequence[str]) -> list[str]:
    """Names of columns as pandas has them where a file leaves one empty: 'Unnamed: 0'. Raises Refused as check_names
    does."""
    check_number(len(names))
    filled = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    check_names(filled)
    return filled


def name_remarks(names: Sequence[str]) -> list[str]:
    """Warnings about names of columns that are kept as they are and easily taken for another: names that differ only in
    upper and lower case, and names that begin or end with white space. Two lines each."""
    said = []
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.casefold(), []).append(name)
    same = [f"{first!r} and {second!r}" for first, second, *_ in (group for group in alike.values() if len(group) > 1)]
    if same:
        said.append(
            f"names of columns differ only in upper and lower case: {_listed(same)}\n"
            "SQL takes them for one, so formats that are asked by SQL refuse the table; rename one to measure them"
        )
    padded = [repr(name) for name in names if name != name.strip()]
    if padded:
        said.append(
            f"names of columns begin or end with white space, which is kept: {_listed(padded)}\n"
            "take it away in the file if it is not meant"
        )
    return said


def _listed(said: Sequence[str]) -> str:
    """The first three, and how many more there are."""
    more = f" and {len(said) - 3:,} more" if len(said) > 3 else ""
    return f"{', '.join(said[:3])}{more}"


def remarks(found: pa.Schema) -> list[str]:
    """What is to be said of columns that are kept as another type than they have; two lines each."""
    plain = [column.name for column in found if pt.is_dictionary(column.type) and not _stays(column.type)]
    if not plain:
        return []
    return [
        f"categories that are neither text nor numbers are measured as plain values: "
        f"{_listed([repr(name) for name in plain])}\n"
        "a format that keeps categories may do better with them than is shown"
    ]


def _stays(kind: pa.DataType) -> bool:
    held = column_type(kind)
    return held is not None and pt.is_dictionary(held)


def kept(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batch with the kept schema, in parts of bearable size. Raises Refused for values that the type cannot hold,
    and ArrowInvalid for a batch that is not sound."""
    # Offsets of a damaged file would lead anywhere in memory.
    batch.validate(full=True)
    rows_at_once = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, BATCH_BYTES))
    for start in range(0, batch.num_rows, rows_at_once):
        part = batch.slice(start, rows_at_once)
        arrays = [_held(array, field) for array, field in zip(part.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _held(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        plain = _plain(array)
        return _category(plain, field.type) if pt.is_dictionary(field.type) else plain.cast(field.type)
    except pa.ArrowNotImplementedError as error:
        raise Refused(
            f"column {field.name!r} is {array.type}, which is not measured ({str(error).splitlines()[0]})",
            "leave the column out, or store it as another type",
        ) from None


def _category(array: pa.Array, kind: pa.DataType) -> pa.Array:
    codes, values = array.indices.cast(kind.index_type), _plain(array.dictionary).cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(codes, values, ordered=kind.ordered)


def _plain(array: pa.Array) -> pa.Array:
    """Without what `cast` does not know."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    return pc.run_end_decode(array) if pt.is_run_end_encoded(array.type) else array
