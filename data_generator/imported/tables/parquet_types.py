"""Find properties of Parquet columns that pyarrow does not report: INT96, ENUM, and annotations that it drops.

INT96 holds timestamps of any day in nanoseconds. pyarrow reads INT96 as 64-bit nanoseconds by default, and values
outside the years 1677 to 2262 wrap around silently. Therefore, this module chooses a unit that holds all values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from data_generator.imported.refusal import Refused
from data_generator.imported.tables import table_types

_INT96 = "INT96"
_NS_PER_S = 1_000_000_000
_MOST_S = (1 << 63) // 1_000_000
"""Limit for timestamps in 64-bit microseconds, in seconds before or after 1970."""

_DROPPED = ("BSON", "GEOMETRY", "GEOGRAPHY", "UNDEFINED", "UNKNOWN")
"""Annotations (logical types of Parquet) that pyarrow drops. pyarrow reports INTERVAL as UNKNOWN, and keeps UUID and
JSON as types."""
_WITHOUT_VALUES = "Null"


def annotated(schema: Any, found: pa.Schema, int96_unit: str) -> pa.Schema:
    """Return the Arrow schema `found` of a file with two changes: ENUM columns become text, and INT96 columns become
    timestamps of the unit `int96_unit`.

    `schema` is the attribute `schema` of a pyarrow.parquet.ParquetFile.
    """
    leaves = _leaves(schema)
    return pa.schema([field.with_type(_annotated(field.type, leaves, int96_unit)) for field in found])


def stored_as(schema: Any, found: pa.Schema) -> dict[str, str]:
    """Return the types that the file declares for columns that are measured as a plainer type, by column name. An
    example is a column of BSON, which is measured as binary."""
    leaves = _leaves(schema)
    said: dict[str, str] = {}
    for field in found:
        for leaf in [next(leaves) for _ in range(_leaves_of(field.type))]:
            kind = leaf.logical_type.type
            if kind in _DROPPED and str(leaf.logical_type) != _WITHOUT_VALUES:
                said[field.name] = str(leaf.logical_type)
            elif kind == "TIME" and "isAdjustedToUTC=true" in str(leaf.logical_type):
                said[field.name] = "time of day in UTC"
        if _is_variant(field.type):
            said[field.name] = "VARIANT"
    return said


def int96_paths(schema: Any) -> list[str]:
    """Return the names of the INT96 columns of a file, in the form that ParquetFile.iter_batches needs."""
    return [leaf.path for leaf in _leaves(schema) if leaf.physical_type == _INT96]


class Int96Unit:
    """Finds the unit that holds all INT96 values of a table: nanoseconds if possible, or else microseconds."""

    def __init__(self) -> None:
        self._is_beyond = False
        self._has_ns = ""

    def look(self, in_s: pa.RecordBatch, in_ns: pa.RecordBatch) -> None:
        """Check some rows, which are given twice: read in seconds and in nanoseconds.

        Raises Refused for timestamps that Arrow cannot represent in any unit.
        """
        for name in in_s.schema.names:
            for seconds, wrapped in zip(_timestamps(in_s[name]), _timestamps(in_ns[name]), strict=True):
                self._look(name, seconds, wrapped)
        if self._is_beyond and self._has_ns:
            raise Refused(
                f"column {self._has_ns!r} is INT96 with fractions of a microsecond, and the table also has INT96 "
                "values before 1677 or after 2262; no timestamp type holds both",
                "Write the INT96 columns as timestamps in microseconds, with a newer writer.",
            )

    def _look(self, name: str, seconds: NDArray[np.int64], wrapped: NDArray[np.int64]) -> None:
        if not len(seconds):
            return
        if max(seconds.max(), -seconds.min()) >= _MOST_S:
            raise Refused(
                f"column {name!r} is INT96 with timestamps more than 292,000 years before or after 1970",
                "Replace these timestamps by missing values.",
            )
        self._is_beyond |= bool((wrapped // _NS_PER_S != seconds).any())
        # Nanoseconds wrap around at 64 bits; so does the difference, which is less than a second.
        below_s = wrapped.view(np.uint64) - seconds.view(np.uint64) * np.uint64(_NS_PER_S)
        if not self._has_ns and bool((below_s % np.uint64(1000)).any()):
            self._has_ns = name

    @property
    def unit(self) -> str:
        """Return the unit as pyarrow spells it."""
        return "us" if self._is_beyond else "ns"


def _timestamps(array: pa.Array) -> Iterator[NDArray[np.int64]]:
    """Yield the values of all timestamps in an array, also within lists, structs and maps."""
    for leaf in table_types.leaves(array):
        if pt.is_timestamp(leaf.type):
            yield leaf.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False)


def _leaves(schema: Any) -> Iterator[Any]:
    return (schema.column(place) for place in range(len(schema)))


def _leaves_of(kind: pa.DataType) -> int:
    """Return the number of Parquet columns in which an Arrow column of this type is stored."""
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves_of(kind.storage_type)
    if pt.is_struct(kind):
        return sum(_leaves_of(kind.field(place).type) for place in range(kind.num_fields))
    if pt.is_map(kind):
        return _leaves_of(kind.key_type) + _leaves_of(kind.item_type)
    return _leaves_of(kind.value_type) if _is_list(kind) else 1


def _annotated(kind: pa.DataType, leaves: Iterator[Any], unit: str) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        _annotated(kind.storage_type, leaves, unit)
        return kind
    if pt.is_struct(kind):
        inside = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([field.with_type(_annotated(field.type, leaves, unit)) for field in inside])
    if pt.is_map(kind):
        key = _annotated(kind.key_type, leaves, unit)
        return pa.map_(key, _annotated(kind.item_type, leaves, unit))
    if _is_list(kind):
        item = kind.value_field.with_type(_annotated(kind.value_type, leaves, unit))
        return pa.list_(item, kind.list_size) if pt.is_fixed_size_list(kind) else pa.list_(item)
    leaf = next(leaves)
    if leaf.physical_type == _INT96:
        return pa.timestamp(unit)
    return pa.string() if leaf.logical_type.type == "ENUM" and pt.is_binary(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    return pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)


def _is_variant(kind: pa.DataType) -> bool:
    """Return whether this may be a struct that stores VARIANT. Its fields show this, because pyarrow does not report
    the annotation."""
    if not pt.is_struct(kind) or kind.num_fields < 2:
        return False
    first = [(kind.field(place).name, kind.field(place).type) for place in range(2)]
    return first == [("metadata", pa.binary()), ("value", pa.binary())]
