"""Zone maps: the bounds of each column's values in zones (ranges of consecutive rows), in a section of OptionalData.

A reader that filters rows skips zones in which no row can match. All columns have the same zones: the writer's ranges
of `rows_per_unit` rows. Only top-level columns with one value or null in each row have bounds. The section is optional,
so other readers ignore it. Numbers are little-endian:

    mark      4 bytes, "F3ZM"
    version   u32, 1
    zones     u32, Z
    columns   u32, C
    rows      u32[Z]      rows of each zone
    places    u32[C]      place of each column in the schema, ascending
    minima    u64[C][Z]   least code; codes (libraries/filters/codes.py) have the order of the values
    maxima    u64[C][Z]   greatest code
    nulls     u32[C][Z]   number of nulls
    exact     u8[C][Z]    1 if each of the two codes belongs to a single value
    checksum  u64         XXH64 of everything before it

If all values of a zone are null or NaN, the minimum is greater than the maximum. The specification
reserves such sections for indexes and filters (section 4), but defines none.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from libraries.f3.decoders import native
from libraries.f3.errors import F3Error
from libraries.filters.codes import HIGHEST, LOWEST, UNORDERED, CodeKind, Value, code, kind_of_type, spelled_out
from libraries.filters.pruning import EXACT, HAS_NULLS

SECTION = "ZoneMaps"
_HEAD, _CHECKSUM = struct.Struct("<4sIII"), struct.Struct("<Q")
_MARK, _VERSION = b"F3ZM", 1
_NONE, _ANY = (HIGHEST, LOWEST), (LOWEST, HIGHEST)
"""(Minimum, maximum) of a zone in which all values are null or NaN, and of a zone whose values are unknown."""


@dataclass(frozen=True, slots=True)
class ZoneColumn:
    """A column with bounds, in the form that libraries.filters.pruning takes (BoundedColumn)."""

    path: tuple[str, ...]
    kind: CodeKind
    flat: bool = True


@dataclass(frozen=True)
class ZoneMaps:
    """The bounds of C columns in Z zones. Implements libraries.filters.pruning.Bounds.

    codes  uint64[2, C, Z], minima and maxima
    nulls  uint32[C, Z]
    exact  bool[C, Z]
    rows   int64[Z]
    """

    columns: Sequence[ZoneColumn]
    codes: npt.NDArray[np.uint64]
    nulls: npt.NDArray[np.uint32]
    exact: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]

    def flag(self, which: int, column: int) -> npt.NDArray[np.bool_]:
        """Return, for each zone, whether a column has the property `which` of libraries.filters.pruning: bool[Z].

        HAS_NULLS and EXACT come from the file. MAY_HOLD_NAN is True everywhere, because zone maps do not record NaN.
        """
        if which == HAS_NULLS:
            return self.nulls[column] > 0
        return self.exact[column] if which == EXACT else np.ones(len(self.rows), np.bool_)


class ZoneWriter:
    """Collects the bounds of zones while a file is written."""

    def __init__(self, schema: pa.Schema) -> None:
        kinds = [kind_of_type(field.type) for field in schema]
        self._kinds = [(place, kind) for place, kind in enumerate(kinds) if kind != UNORDERED]
        self._rows: list[int] = []
        self._bounds: list[npt.NDArray[np.void]] = []

    @property
    def are_useful(self) -> bool:
        """Whether zone maps can help a reader: there are at least two zones, and columns with bounds."""
        return len(self._rows) > 1 and bool(self._kinds)

    def add(self, table: pa.Table, *, is_last: bool) -> None:
        """Append a zone with the bounds of a table's rows. Do nothing if the table holds all rows of the file (it is
        the first, and `is_last`), because a reader could never skip the only zone."""
        if table.num_rows and not (is_last and not self._rows):
            self._rows.append(table.num_rows)
            self._bounds.append(np.array([_bounds(table.column(place), kind) for place, kind in self._kinds], _BOUNDS))

    def packed(self) -> bytes:
        """Return the bytes of the section."""
        # The zones of a column are together.
        by_column = np.stack(self._bounds, axis=1)
        head = _HEAD.pack(_MARK, _VERSION, len(self._rows), len(self._kinds))
        places = np.array([place for place, _ in self._kinds], "<u4")
        parts = (np.array(self._rows, "<u4"), places, *(by_column[name] for name in _BOUNDS.names or ()))
        section = head + b"".join(part.tobytes() for part in parts)
        return section + _CHECKSUM.pack(xxhash.xxh64_intdigest(section))


_BOUNDS = np.dtype([("minimum", "<u8"), ("maximum", "<u8"), ("nulls", "<u4"), ("exact", "u1")])


def read_zones(data: memoryview, schema: pa.Schema, rows: int) -> ZoneMaps | None:
    """Return the zone maps of a file with `rows` rows. Return None if the section has an unknown version. Raises
    F3Error."""
    if len(data) < _HEAD.size:
        raise F3Error(f"zone maps: the section needs at least {_HEAD.size} bytes (got {len(data)})")
    mark, version, zones, columns = _HEAD.unpack_from(data)
    if mark != _MARK:
        raise F3Error(f"zone maps: the section begins with {mark!r}, expected {_MARK!r}")
    if version != _VERSION:
        return None
    size_bytes = _HEAD.size + 4 * (zones + columns) + 21 * zones * columns + _CHECKSUM.size
    if len(data) != size_bytes:
        raise F3Error(f"zone maps: {zones} zones of {columns} columns need {size_bytes} bytes (got {len(data)})")
    # A wrong bound would make a filter silently lose rows, so the checksum is verified even with verify="none".
    if _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)[0] != xxhash.xxh64_intdigest(data[: -_CHECKSUM.size]):
        raise F3Error("zone maps: the section does not match its checksum")
    place = _HEAD.size

    def taken(form: str, *shape: int) -> Any:
        nonlocal place
        found = np.frombuffer(data, form, int(np.prod(shape)), place).reshape(shape)
        place += found.nbytes
        return found

    row_counts, places = taken("<u4", zones).astype(np.int64), taken("<u4", columns)
    if not row_counts.all():
        raise F3Error("zone maps: a zone has 0 rows; each zone must have at least 1")
    if row_counts.sum() != rows:
        raise F3Error(f"zone maps: the zones have {row_counts.sum()} rows, but the file has {rows}")
    if np.any(places[1:] <= places[:-1]) or np.any(places >= len(schema)):
        got = f"got {places.tolist()!s:.60}"
        raise F3Error(f"zone maps: the column numbers must ascend and be less than {len(schema)} ({got})")
    fields = [schema.field(int(each)) for each in places]
    return ZoneMaps(
        columns=[ZoneColumn((field.name,), kind_of_type(field.type)) for field in fields],
        codes=taken("<u8", 2, columns, zones),
        nulls=taken("<u4", columns, zones),
        exact=taken("u1", columns, zones) != 0,
        rows=row_counts,
    )


def _bounds(column: pa.ChunkedArray, kind: CodeKind) -> tuple[int, int, int, bool]:
    """Return least code, greatest code and number of nulls of a column, and whether each of the two codes belongs to a
    single value."""
    nulls = column.null_count
    if nulls == len(column):
        return *_NONE, nulls, False
    if kind.name in ("text", "binary"):
        # Codes hold 8 bytes of a text, which seldom identify it.
        return *_text_bounds(column, kind), nulls, False
    found = _number_bounds(column)
    if found is None:
        return *_ANY, nulls, False
    low, high = found
    if isinstance(low, float):
        if low != low:
            return *_NONE, nulls, False  # All values are NaN or null.
        # -0.0 and 0.0 are equal but have different codes, so the bounds include both.
        low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    return code(kind, low), code(kind, high), nulls, spelled_out(kind, low) and spelled_out(kind, high)


def _number_bounds(column: pa.ChunkedArray) -> tuple[Value, Value] | None:
    """Return the least and the greatest number of a column, in the form that `code` takes. Both are NaN if all values
    are NaN or null.

    Decimals are unscaled, and times are integers as Arrow stores them. Return None if Arrow does not compare the type.
    """
    kind = column.type
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        if column.null_count == 0 and column.num_chunks == 1:
            # numpy takes a tenth of Arrow's time for floats. With NaN numpy's result is NaN, so Arrow finds the bounds.
            values = column.chunk(0).to_numpy()
            if (low := float(values.min())) == low:
                return low, float(values.max())
    elif pa.types.is_float16(kind):
        return None
    low, high = pc.min_max(column).values()
    if pa.types.is_decimal(kind):
        return _unscaled(low.as_py(), kind.scale), _unscaled(high.as_py(), kind.scale)
    if pa.types.is_temporal(kind):
        return low.value, high.value
    found = low.as_py(), high.as_py()
    return (int(found[0]), int(found[1])) if pa.types.is_boolean(kind) else found


def _unscaled(value: Decimal, scale: int) -> int:
    # Decimal.scaleb rounds to the digits of the context.
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def _text_bounds(column: pa.ChunkedArray, kind: CodeKind) -> tuple[int, int]:
    """Return the least and the greatest code (libraries.filters.codes) of a column of texts or binaries. At least one
    of the texts must not be null."""
    kernels = native.library()
    if kernels is None:
        low, high = pc.min_max(column.cast(pa.large_binary())).values()
        return code(kind, low.as_py()), code(kind, high.as_py())
    bounds = (ctypes.c_uint64 * 2)(*_NONE)
    for chunk in column.chunks:
        validity, offsets, data = chunk.buffers()
        kernels.f3_text_bounds(
            ctypes.c_void_p(None if data is None else data.address),
            ctypes.c_void_p(None if offsets is None else offsets.address),
            8 if pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type) else 4,
            ctypes.c_void_p(None if validity is None else validity.address),
            ctypes.c_uint64(chunk.offset),
            ctypes.c_uint64(len(chunk)),
            bounds,
        )
    return bounds[0], bounds[1]
