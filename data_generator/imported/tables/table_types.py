"""The types in which a user's table is stored: the types in docs/data.md, and lists, structs and maps of these types.

Some other types are converted to a stored type with the same values: views, large types and extension types, and,
within nested columns, dictionaries and half floats. Columns of all other types are refused. Metadata are dropped,
because pandas' metadata cannot be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.refusal import Refused

BATCH_BYTES = 32 << 20
"""Approximate maximum size of a batch in bytes. Larger batches are divided."""

MOST_COLUMNS = 1 << 14
"""Maximum number of columns, the same as in an Excel sheet. Readers, formats and reports take time and memory for each
column, even with few rows. A hundred thousand columns would take minutes and gigabytes."""

_CODES = (pa.int8(), pa.int16(), pa.int32())
"""Types that pandas or pyarrow use for the codes of categories."""
DECIMAL_DIGITS = 38
"""Maximum number of digits of a decimal. Most formats do not support wider decimals."""

_BOOL8 = "arrow.bool8"
_EXTENSION_NAME = b"ARROW:extension:name"
_AS_THEY_ARE = (pt.is_boolean, pt.is_integer, pt.is_float32, pt.is_float64, pt.is_date32, pt.is_time, pt.is_duration)


def column_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which a column of type `kind` is stored; None if the column cannot be stored.

    The type stays the same if possible. Categorical columns keep their type if the categories are text or numbers.
    Other categories become plain values, because few libraries support them.
    """
    if pt.is_float16(kind):
        return kind
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name != _BOOL8:
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
    """Return the type in which values of type `kind` are stored within a nested column; None if they cannot be stored.

    The type stays the same if possible.
    """
    if any(is_so(kind) for is_so in _AS_THEY_ARE) or pt.is_timestamp(kind):
        return kind
    if pt.is_null(kind):
        # pandas reads a column without values as float64.
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
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= DECIMAL_DIGITS else None
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return kept_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.bool_() if kind.extension_name == _BOOL8 else kept_type(kind.storage_type)
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
    """Return the schema in which a table with the schema `found` is stored.

    Raises Refused, naming the column, if a column cannot be stored.
    """
    check_number(sum(_columns_in(column.type) for column in found))
    check_names(found.names)
    return pa.schema([_kept_field(column) for column in found])


def _kept_field(column: pa.Field) -> pa.Field:
    held = column_type(column.type)
    if held is None:
        step = "Leave the column out, or store it as another type."
        if pt.is_decimal(column.type):
            step = f"Leave the column out, or store it with at most {DECIMAL_DIGITS} digits"
        raise Refused(f"column {column.name!r} has the type {column.type}, which is not supported", step)
    for kind in _parts(held):
        fields = [kind.field(place).name for place in range(kind.num_fields)] if pt.is_struct(kind) else []
        twice = next((name for name in fields if fields.count(name) > 1), None)
        if twice is not None:
            raise Refused(
                f"column {column.name!r} has two fields with the name {twice!r}", "Give each field a unique name."
            )
        if pt.is_timestamp(kind) and kind.tz is not None and not _is_known_zone(kind.tz):
            raise Refused(
                f"column {column.name!r} has the time zone {kind.tz!r}, which is unknown on this machine",
                "Use a zone of the IANA database, such as 'Europe/Prague', or an offset, such as '+05:30'.",
            )
    return pa.field(column.name, held)


def _parts(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for place in range(kind.num_fields):
        yield from _parts(kind.field(place).type)


def _is_known_zone(zone: str) -> bool:
    try:
        pa.lib.string_to_tzinfo(zone)
    except (ValueError, LookupError, OSError, pa.ArrowException):
        return False
    return True


def _columns_in(kind: pa.DataType) -> int:
    """Return how many columns a column of this type counts as. Each field of a struct counts as one column."""
    if pt.is_struct(kind):
        return sum(_columns_in(kind.field(place).type) for place in range(kind.num_fields))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _columns_in(kind.value_type)
    return _columns_in(kind.key_type) + _columns_in(kind.item_type) if pt.is_map(kind) else 1


def check_number(columns: int) -> None:
    """Raise Refused if there are too many columns. Each field of a struct counts as a column.

    Call this function as soon as the number is known, because every later step takes time for each column.
    """
    if columns > MOST_COLUMNS:
        raise Refused(
            f"has {columns:,} columns, more than the limit of {MOST_COLUMNS:,}",
            "Leave columns out, or store them as rows: one column for the name, one for the value.",
        )


def check_names(names: Sequence[str]) -> None:
    """Raise Refused for too many columns or none, and for repeated names."""
    check_number(len(names))
    if not names:
        raise Refused("has no columns", "Name a file with a table.")
    seen: set[str] = set()
    for number, name in enumerate(names, start=1):
        if name in seen:
            raise Refused(
                f"columns {list(names).index(name) + 1} and {number} have the same name {name!r}",
                "Give each column a unique name.",
            )
        seen.add(name)


def named(names: Sequence[str]) -> list[str]:
    """Return the column names with empty names replaced as in pandas, e.g. by 'Unnamed: 0'.

    Raises Refused in the same cases as `check_names`.
    """
    check_number(len(names))
    filled = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    check_names(filled)
    return filled


def name_remarks(names: Sequence[str]) -> list[str]:
    """Return warnings of two lines about column names that are easily confused.

    Such names differ only in upper and lower case, or have white space at either end.
    """
    said = []
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.casefold(), []).append(name)
    same = [f"{first!r} and {second!r}" for first, second, *_ in (group for group in alike.values() if len(group) > 1)]
    if same:
        said.append(
            f"column names differ only in upper and lower case: {listed(same)}\n"
            "SQL treats them as equal, so formats with SQL queries refuse the table; rename one to measure them"
        )
    padded = [repr(name) for name in names if name != name.strip()]
    if padded:
        said.append(
            f"column names begin or end with white space, which is kept: {listed(padded)}\n"
            "remove it from the file if it is not intended"
        )
    return said


def listed(said: Sequence[str]) -> str:
    """Return the first three texts as one string. If there are more texts, the string ends with their number."""
    more = f" and {len(said) - 3:,} more" if len(said) > 3 else ""
    return f"{', '.join(said[:3])}{more}"


def remarks(found: pa.Schema, stored_as: Mapping[str, str] | None = None) -> list[str]:
    """Return remarks of two lines on columns that are stored as another type.

    `stored_as` maps the name of a column to the type that the file declares, if pyarrow reports another type in
    `found`.
    """
    said = []
    plain = [repr(column.name) for column in found if pt.is_dictionary(column.type) and not _stays(column.type)]
    if plain:
        said.append(
            f"categories that are neither text nor numbers are measured as plain values: {listed(plain)}\n"
            "a format that keeps categories may do better with them than shown"
        )
    own = {**_own_types(found), **(stored_as or {})}
    if own:
        as_plain = [f"{name!r} ({own[name]} as {column_type(found.field(name).type)})" for name in own]
        said.append(
            f"columns of special types are measured as their storage types: {listed(as_plain)}\n"
            "write the values as another type if they have another meaning"
        )
    return said


def _own_types(found: pa.Schema) -> dict[str, str]:
    """Return column name -> name of the extension type, for all columns with an extension type except bool8.

    The extension type may be unknown to pyarrow. bool8 is excluded, because it becomes booleans.
    """
    named = {column.name: next(_extensions(column), "") for column in found}
    return {name: own for name, own in named.items() if own and own != _BOOL8}


def _extensions(column: pa.Field) -> Iterator[str]:
    if isinstance(column.type, pa.BaseExtensionType):
        yield column.type.extension_name
        return
    if column.metadata and _EXTENSION_NAME in column.metadata:
        yield column.metadata[_EXTENSION_NAME].decode(errors="replace")
    for place in range(column.type.num_fields):
        yield from _extensions(column.type.field(place))


def _stays(kind: pa.DataType) -> bool:
    held = column_type(kind)
    return held is not None and pt.is_dictionary(held)


def kept(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batch with the stored schema, divided into parts of limited size.

    Raises Refused for values that the stored type cannot hold, and ArrowInvalid for a damaged batch.
    """
    _check_sound(batch)
    rows_at_once = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, BATCH_BYTES))
    for start in range(0, batch.num_rows, rows_at_once):
        part = batch.slice(start, rows_at_once)
        arrays = [_held(array, field) for array, field in zip(part.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _check_sound(batch: pa.RecordBatch) -> None:
    """Raise Refused for invalid dates and times, and ArrowInvalid for a damaged batch. The offsets in a damaged batch
    could point anywhere in memory."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        match = _NO_SUCH_TIME.match(str(error))
        if match is None:
            raise
        raise Refused(
            f"column {batch.schema.names[int(match[1])]!r}: {match[2]}",
            "Store the column as a timestamp or as a duration.",
        ) from None


_NO_SUCH_TIME = re.compile(r"In column (\d+): Invalid: ((?:date|time)(?:32|64).*)")
_FIRST_DAY, _LAST_DAY = -719162, 2932896
"""The dates 0001-01-01 and 9999-12-31, as numbers of days since 1970-01-01."""


def _check_days(array: pa.Array, name: str) -> None:
    """Raise Refused for a date beyond Python's range of years, which no DataFrame and hardly any format supports."""
    for leaf in leaves(array):
        if not pt.is_date32(leaf.type):
            continue
        days = leaf.cast(pa.int32())
        wrong = days.filter(pc.or_(pc.less(days, _FIRST_DAY), pc.greater(days, _LAST_DAY)))
        if len(wrong):
            first = wrong[0].as_py()
            raise Refused(
                f"column {name!r} has {len(wrong):,} dates outside the years 1 to 9999 (the first is "
                f"{abs(first):,} days {'before' if first < 0 else 'after'} 1970-01-01)",
                "Replace these dates by missing values, or store the column as integers.",
            )


def leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of plain values within an array of lists, structs or maps; for plain values, the array itself.

    The yielded arrays may contain values that are within a null list, struct or map.
    """
    kind = array.type
    if pt.is_struct(kind):
        for part in array.flatten():
            yield from leaves(part)
    elif pt.is_map(kind):
        inside = slice(array.offsets[0].as_py(), array.offsets[-1].as_py())
        yield from leaves(array.keys[inside])
        yield from leaves(array.items[inside])
    elif pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        yield from leaves(array.flatten())
    else:
        yield array


def _held(array: pa.Array, field: pa.Field) -> pa.Array:
    held = array if array.type == field.type else _cast(array, field)
    _check_days(held, field.name)
    return held


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        plain = _plain(array)
        return _category(plain, field.type) if pt.is_dictionary(field.type) else plain.cast(field.type)
    except pa.ArrowNotImplementedError as error:
        raise Refused(
            f"column {field.name!r} has the type {array.type}, which is not supported ({str(error).splitlines()[0]})",
            "Leave the column out, or store it as another type.",
        ) from None


def _category(array: pa.Array, kind: pa.DataType) -> pa.Array:
    codes, values = array.indices.cast(kind.index_type), _plain(array.dictionary).cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(codes, values, ordered=kind.ordered)


def _plain(array: pa.Array) -> pa.Array:
    """Return the array with plain types in place of the types that pyarrow's `cast` does not support."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    return pc.run_end_decode(array) if pt.is_run_end_encoded(array.type) else array
