"""Combine the Parquet files of a folder into one table, with one schema and with columns from the names of folders.

Files may have different types for a column if one type can hold the values of all files. A column without values agrees
with every type.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Container, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.refusal import Refused
from data_generator.imported.tables import table_types

_STEP = "Put the files of one schema into a separate folder, and name that folder."
_MISSING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)

Partition = Mapping[str, str | None]
"""Name of a partition column -> value in the folder names of a file, such as 2024 for year=2024; None if it is
missing."""


def partition_of(name: str) -> dict[str, str | None]:
    """Return the values of partition columns in the folder names of a file.

    For 'year=2024/month=1/part.parquet', this is {'year': '2024', 'month': '1'}. Raises Refused for a folder name that
    is not UTF-8 after decoding, and if two folders have a value for the same column.
    """
    values: dict[str, str | None] = {}
    for folder in os.path.dirname(name).split(os.sep):
        column, equals, value = folder.partition("=")
        if not equals:
            continue
        try:
            column, value = (urllib.parse.unquote(part, errors="strict") for part in (column, value))
        except UnicodeDecodeError:
            raise Refused(f"the folder name {folder!r} is not UTF-8 after decoding", "Rename the folder.") from None
        if column in values:
            raise Refused(f"two folders give values of the column {column!r}", "Rename one of the folders.")
        values[column] = None if value == _MISSING else value
    return values


class Partitions:
    """The partition columns, whose values are in the names of folders. All files must have values for the same
    columns."""

    def __init__(self, partitions: Sequence[Partition], in_files: Container[str]) -> None:
        """Determine the types of the partition columns.

        `partitions` has the values of each file, and `in_files` has the names of columns in the files. As in pandas and
        pyarrow, a column is integer if all its values are integers, else text. A column that is also in the files has
        the type of the files, and its values there must equal the value in the folder name.
        """
        values = {name: [partition[name] for partition in partitions] for name in partitions[0] if name not in in_files}
        self._in_files = [name for name in partitions[0] if name in in_files]
        self.types = {name: _type(texts) for name, texts in values.items()}
        self.remarks = [
            f"values of the partition column {name!r} become integers, which are not written the same way: "
            f"{text!r} becomes {int(text)}\nrename the folders if they are names and not numbers"
            for name, texts in values.items()
            if pt.is_integer(self.types[name]) and (text := _changed(texts)) is not None
        ]

    def understood(self) -> dict[str, str]:
        """Return a description of the partition columns for Found.understood."""
        said = ", ".join([*(f"{name} ({kind})" for name, kind in self.types.items()), *self._in_files])
        return {"partitions": f"{said}, from the names of folders"} if said else {}

    def added(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of a file with the partition columns appended."""
        for name, kind in self.types.items():
            schema = schema.append(pa.field(name, kind))
        return schema

    def filled(self, batch: pa.RecordBatch, partition: Partition) -> pa.RecordBatch:
        """Return the rows of a file with the partition columns appended.

        Raises Refused if the file itself has a partition column with other values than the folder name.
        """
        for name in self._in_files:
            _check_agrees(name, batch[name], partition[name])
        for name, kind in self.types.items():
            text = partition[name]
            value = None if text is None else text if kind == pa.string() else int(text)
            batch = batch.append_column(name, pa.repeat(pa.scalar(value, kind), batch.num_rows))
        return batch


def _type(texts: Sequence[str | None]) -> pa.DataType:
    given = [text for text in texts if text is not None]
    if not given or not all(_WHOLE_NUMBER.fullmatch(text) for text in given):
        return pa.string()
    largest = max(max(int(text), -int(text) - 1) for text in given)
    return pa.int32() if largest < 1 << 31 else pa.int64() if largest < 1 << 63 else pa.string()


def _changed(texts: Sequence[str | None]) -> str | None:
    """Return the first text that would be written differently as a number, such as '01'; None if there is none."""
    return next((text for text in texts if text is not None and str(int(text)) != text), None)


def _check_agrees(name: str, column: pa.Array, text: str | None) -> None:
    if pt.is_integer(column.type) and text is not None and _WHOLE_NUMBER.fullmatch(text):
        text = str(int(text))
    if text is None:
        is_same = column.null_count == len(column)
    else:
        is_same = bool(pc.all(pc.fill_null(pc.equal(column.cast(pa.string()), text), False)).as_py())
    if not is_same:
        stated = "null" if text is None else repr(text)
        raise Refused(
            f"has the column {name!r} with values other than {stated}, which the name of its folder states",
            "Rename the column or the folder.",
        )


# --- one schema --------------------------------------------------------------------------------------------------


class Union:
    """The schema that holds the values of all files. Its column order is that of the first file."""

    def __init__(self, first: pa.Schema, name: str) -> None:
        """Begin with the schema `first` of the first file, which is called `name` in messages."""
        self._first, self._names = name, first.names
        self._types = {field.name: field.type for field in first}
        self._seen: dict[str, list[pa.DataType]] = {field.name: [field.type] for field in first}
        self._reordered = ""

    def add(self, schema: pa.Schema, file: str) -> None:
        """Add the schema of another file.

        Raises Refused, naming the first column that one of the files lacks, or whose types cannot be combined.
        """
        for name in self._names:
            if name not in schema.names:
                raise Refused(f"lacks the column {name!r}, which {self._first} has", _STEP)
            kind = schema.field(name).type
            both = _holding(self._types[name], kind)
            if both is None:
                before = self._types[name]
                raise Refused(
                    f"has the column {name!r} as {kind}, which cannot be combined with {before} "
                    f"in earlier files (the first is {self._first})",
                    _STEP,
                )
            self._types[name] = both
            if kind not in self._seen[name]:
                self._seen[name].append(kind)
        extra = next((name for name in schema.names if name not in self._types), None)
        if extra is not None:
            raise Refused(f"has the column {extra!r}, which {self._first} lacks", _STEP)
        if schema.names != self._names:
            self._reordered = self._reordered or file

    @property
    def schema(self) -> pa.Schema:
        """Return the schema that holds the values of all files added so far."""
        return pa.schema(list(self._types.items()))

    def remarks(self) -> list[str]:
        """Return remarks on differences between the files. Each remark has two lines."""
        said = []
        if self._reordered:
            said.append(
                f"{self._reordered} has its columns in another order than {self._first}; they are matched by name"
                "\nnothing to do if equal names mean the same"
            )
        widened = [
            f"{name!r} ({' and '.join(map(str, kinds))}, taken as {self._types[name]})"
            for name, kinds in ((name, self._with_values(name)) for name in self._names)
            if len({table_types.kept_type(kind) for kind in kinds}) > 1
        ]
        if widened:
            said.append(
                f"files have columns of several types: {table_types.listed(widened)}\n"
                "every value is kept; write the files with one schema to measure another type"
            )
        return said

    def _with_values(self, name: str) -> list[pa.DataType]:
        return [kind for kind in self._seen[name] if not pt.is_null(kind)]


def _holding(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type that holds all values of the types `one` and `other`; None if there is no such type."""
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if pt.is_dictionary(one) or pt.is_dictionary(other):
        return _holding(*(kind.value_type if pt.is_dictionary(kind) else kind for kind in (one, other)))
    if pt.is_integer(one) and pt.is_integer(other):
        return _integer(one, other)
    if pt.is_floating(one) and pt.is_floating(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    if pt.is_decimal(one) and pt.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = scale + max(one.precision - one.scale, other.precision - other.scale)
        return pa.decimal128(digits, scale) if digits <= table_types.DECIMAL_DIGITS else None
    if pt.is_timestamp(one) and pt.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: ("s", "ms", "us", "ns").index(kind.unit))
    nested = _nested(one, other)
    return nested or (one if table_types.kept_type(one) == table_types.kept_type(other) is not None else None)


def _integer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    signed = pt.is_signed_integer(one), pt.is_signed_integer(other)
    if signed[0] == signed[1]:
        return max(one, other, key=lambda kind: kind.bit_width)
    negative, positive = (one, other) if signed[0] else (other, one)
    bits = max(negative.bit_width, 2 * positive.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


def _nested(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pt.is_list(one) and pt.is_list(other):
        item = _holding(one.value_type, other.value_type)
        return pa.list_(item) if item is not None else None
    if pt.is_map(one) and pt.is_map(other):
        key, item = _holding(one.key_type, other.key_type), _holding(one.item_type, other.item_type)
        return pa.map_(key, item) if key is not None and item is not None else None
    if not pt.is_struct(one) or not pt.is_struct(other):
        return None
    mine, theirs = ([kind.field(place) for place in range(kind.num_fields)] for kind in (one, other))
    if [field.name for field in mine] != [field.name for field in theirs]:
        return None
    held = [(left.name, _holding(left.type, right.type)) for left, right in zip(mine, theirs, strict=True)]
    return pa.struct(held) if all(kind is not None for _, kind in held) else None
