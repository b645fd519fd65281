"""Load and call the native library, which is compiled from the C code in `kernels`. Turn its error codes into
exceptions.

libraries/build.py compiles the library into the folder of its sources. If that failed, `library()` is None. Files are
then decoded by Wasm and encoded by numpy. A payload is the encoded content of an EncUnit, the smallest part of a column
that can be decoded. Payloads may be hostile. The library checks them; this module only allocates the buffers that the
library fills. Calls release the interpreter lock.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from libraries.f3.columns.memory_layout import TEXT, Shape, shape_of
from libraries.f3.encodings import versions
from libraries.f3.errors import F3Error

KERNELS = Path(__file__).parents[1] / "kernels"
"""Folder of the sources and of the compiled files."""
LIBRARY_NAME = {"darwin": "libf3_kernels.dylib", "win32": "f3_kernels.dll"}.get(sys.platform, "libf3_kernels.so")
MODULE_NAME = "core.wasm"
"""The Wasm module that is compiled from the same kernels and embedded in files."""
MOST_ARRAY_BYTES = 1 << 32
"""Maximum bytes of one array. Files may state larger sizes, which are rejected."""
_MOST_TOGETHER_BYTES = 1 << 22
"""Maximum memory for rows that one call picks from several columns."""
_FIRST_SCRATCH_BYTES, _KEPT_SCRATCH_BYTES, _MOST_SCRATCH_BYTES = 1 << 22, 1 << 26, 1 << 30

FAULTS = {
    1: "the payload is cut short",
    2: "the payload has an invalid node, width or count",
    3: "the payload has an index out of range",
    4: "the payload nests nodes too deeply",
    5: "the payload needs more decoding work than its number of rows allows",
    6: "the payload has another number of rows or another type than the metadata state",
    7: "the payload has a string that is not UTF-8",
    8: "the payload needs more memory than any valid payload",
    9: "the file cannot be read, or was made shorter since it was opened",
}
"""Error code of kernels.h -> message."""
_NO_ROOM, _UNREADABLE = 8, 9
_GUESSED_TEXT_BYTES = 64
_RETURN_U64 = (
    "f3_pack", "f3_training_bytes", "f3_to_symbols", "f3_decimals_64", "f3_decimals_32", "f3_lz4_bytes",
    "f3_memo_add",
)  # fmt: skip
NOT_BUILT = (
    "F3's native library is not built: files are read by the Wasm modules in them and written by numpy, both slower\n"
    "  build it with 'pip install ziglang', then 'python -m libraries.build'"
)


class DecodeTarget(ctypes.Structure):
    """`struct target` of kernels.h: the buffers that decoded values are written to."""

    _fields_ = (
        ("values", ctypes.c_void_p),
        ("values_bytes", ctypes.c_uint64),
        ("offsets", ctypes.c_void_p),
        ("validity", ctypes.c_void_p),
        ("kind", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("utf8", ctypes.c_uint32),
        ("first_row", ctypes.c_uint64),
        ("first_byte", ctypes.c_uint64),
        ("nulls", ctypes.c_uint64),
    )


@cache
def library() -> ctypes.CDLL | None:
    """Return the native kernels, or None (with one warning) if they were not built for this machine."""
    try:
        loaded = ctypes.CDLL(str(KERNELS / LIBRARY_NAME))
        for name in _RETURN_U64:
            loaded[name].restype = ctypes.c_uint64
        built = divmod(loaded.f3_version(), 1 << 16)
    except (OSError, AttributeError):
        # AttributeError: the library was built from an older version.
        built = None
    if built != (versions.NATIVE.major, versions.NATIVE.minor):
        warnings.warn(NOT_BUILT, RuntimeWarning, stacklevel=_callers_level())
        return None
    return loaded


def _callers_level() -> int:
    """Return the stack level of the caller outside this package, so that the warning shows the caller's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(str(KERNELS.parent)):
        level, frame = level + 1, frame.f_back
    return level


_scratch = threading.local()


def _scratch_of(size_bytes: int) -> ctypes.Array[ctypes.c_char]:
    """Return working memory of at least `size_bytes`. Unless this memory is exceptionally large, the thread keeps it
    for later calls."""
    if size_bytes > _KEPT_SCRATCH_BYTES:
        return ctypes.create_string_buffer(size_bytes)
    kept: ctypes.Array[ctypes.c_char] | None = getattr(_scratch, "memory", None)
    if kept is None or len(kept) < size_bytes:
        kept = _scratch.memory = ctypes.create_string_buffer(size_bytes)
    return kept


def decode(kernels: Any, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
    """Decode consecutive EncUnits of a column into one array. Raises F3Error for invalid payloads."""
    shape, units, total = shape_of(arrow_type), len(payloads), sum(rows)
    held = [pa.py_buffer(payload) for payload in payloads]
    addresses = (ctypes.c_void_p * units)(*[buffer.address for buffer in held])
    sizes = (ctypes.c_uint64 * units)(*[buffer.size for buffer in held])
    counts = (ctypes.c_uint32 * units)(*rows)
    data_bytes, has_nulls, unit = ctypes.c_uint64(), ctypes.c_uint32(), ctypes.c_uint32()
    fault = kernels.f3_survey(
        units, addresses, sizes, counts, shape.kind, shape.width_bytes,
        ctypes.byref(data_bytes), ctypes.byref(has_nulls), ctypes.byref(unit),
    )  # fmt: skip
    if fault:
        raise F3Error(f"EncUnit {unit.value} of {units}: {FAULTS[fault]}")
    validity, offsets, values = allocate(shape, total, data_bytes.value, bool(has_nulls.value))
    target = DecodeTarget(
        values=values.address,
        values_bytes=values.size,
        offsets=offsets.address if offsets else None,
        validity=validity.address if validity else None,
        kind=shape.kind,
        width=shape.width_bytes,
        utf8=shape.utf8,
    )
    unit.value = 0
    scratch = _scratch_of(_FIRST_SCRATCH_BYTES)
    arguments = (units, addresses, sizes, counts, ctypes.byref(target))
    while fault := kernels.f3_decode_units(*arguments, scratch, ctypes.c_uint64(len(scratch)), ctypes.byref(unit)):
        if fault != _NO_ROOM or len(scratch) >= _MOST_SCRATCH_BYTES:
            raise F3Error(f"EncUnit {unit.value} of {units}: {FAULTS[fault]}")
        scratch = _scratch_of(2 * len(scratch))
    buffers = [validity, offsets, values] if offsets else [validity, values]
    return pa.Array.from_buffers(arrow_type, total, buffers, target.nulls)


PICKED = np.dtype(
    [("memory", "<u8"), ("offset", "<u8"), ("size_bytes", "<u8"), ("rows", "<u4"), ("first", "<u4"), ("count", "<u4")],
    align=True,
)
"""`struct picked` of native.c: an EncUnit of which some rows are wanted. `memory` is the address of the payload; if it
is 0, the payload is in a file, at `offset`. `rows` is the number of rows of the EncUnit. The array of all wanted rows
has `count` rows of this EncUnit, from index `first` on."""


def pick(kernels: Any, units: np.ndarray, descriptor: int, wanted: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
    """Decode some rows of EncUnits into one array.

    Args:
        kernels: the library
        units: array of PICKED, in the order of the result. The caller keeps the payloads in memory
        descriptor: the open file of units that are not in memory; -1 if there are none
        wanted: uint32, row numbers within their units
        arrow_type: type of the values

    Raises F3Error for invalid payloads, and OSError if the file cannot be read.
    """
    shape, total = shape_of(arrow_type), len(wanted)
    validity = np.zeros((total + 7) // 8, np.uint8)
    is_text = shape.kind == TEXT
    offsets = np.zeros(total + 1, f"u{shape.width_bytes}") if is_text else None
    values_bytes = min(total * _GUESSED_TEXT_BYTES, MOST_ARRAY_BYTES) if is_text else check_size(shape, total, 0)
    scratch = _scratch_of(_FIRST_SCRATCH_BYTES)
    while True:
        values = np.zeros(values_bytes, np.uint8)
        target = DecodeTarget(
            values=values.ctypes.data,
            values_bytes=values_bytes,
            offsets=None if offsets is None else offsets.ctypes.data,
            validity=validity.ctypes.data,
            kind=shape.kind,
            width=shape.width_bytes,
            utf8=shape.utf8,
        )
        failed = ctypes.c_uint32()
        arguments = (
            len(units), ctypes.c_void_p(units.ctypes.data), descriptor, ctypes.c_void_p(wanted.ctypes.data),
            ctypes.byref(target),
        )  # fmt: skip
        while fault := kernels.f3_pick_units(*arguments, scratch, ctypes.c_uint64(len(scratch)), ctypes.byref(failed)):
            if fault == _UNREADABLE:
                raise OSError(FAULTS[fault])
            if fault != _NO_ROOM or len(scratch) >= _MOST_SCRATCH_BYTES:
                raise F3Error(f"EncUnit {failed.value} of {len(units)}: {FAULTS[fault]}")
            scratch = _scratch_of(2 * len(scratch))
        if not is_text:
            break
        needed_bytes = check_size(shape, total, target.first_byte)
        if needed_bytes <= values_bytes:
            break
        values_bytes = needed_bytes
    buffers = [pa.py_buffer(validity) if target.nulls else None, pa.py_buffer(values)]
    if offsets is not None:
        buffers.insert(1, pa.py_buffer(offsets))
    return pa.Array.from_buffers(arrow_type, total, buffers, target.nulls)


_TARGET = np.dtype(
    [
        *((name, "<u8") for name in ("values", "values_bytes", "offsets", "validity")),
        *((name, "<u4") for name in ("kind", "width", "utf8")),
        *((name, "<u8") for name in ("first_row", "first_byte", "nulls")),
    ],
    align=True,
)
_COLUMN = np.dtype(
    [("table", "<u8"), ("wanted", "<u8"), ("target", _TARGET), ("units", "<u4"), ("fault", "<i4")], align=True
)
"""`struct column` of native.c: the rows to pick from one column."""
_LINE_BYTES = 64


@dataclass(frozen=True)
class PickedRows:
    """Rows to pick from one column: an array of its EncUnits (PICKED), and the numbers of the wanted rows within these
    units (uint32)."""

    units: np.ndarray
    wanted: np.ndarray
    arrow_type: pa.DataType


def pick_columns(kernels: Any, columns: Sequence[PickedRows], descriptor: int) -> list[pa.Array | None]:
    """Decode some rows of several columns by one call of the library.

    `pick` does the same for one column. The result is None for columns that the caller has to read by `pick`: those
    with a fault, or with more bytes of strings than were reserved for them. All are None if the columns need too much
    memory together.
    """
    shapes = [shape_of(column.arrow_type) for column in columns]
    places = []
    size_bytes = 0
    for column, shape in zip(columns, shapes, strict=True):
        count = len(column.wanted)
        parts = (
            (count + 7) // 8,
            (count + 1) * shape.width_bytes if shape.kind == TEXT else 0,
            count * (_GUESSED_TEXT_BYTES if shape.kind == TEXT else shape.width_bytes) or (count + 7) // 8,
        )
        starts = []
        for part_bytes in parts:
            starts.append(size_bytes)
            size_bytes += -(-part_bytes // _LINE_BYTES) * _LINE_BYTES
        places.append((starts, parts))
    if size_bytes > _MOST_TOGETHER_BYTES:
        return [None] * len(columns)
    memory = np.zeros(size_bytes, np.uint8)
    base = memory.ctypes.data
    table = np.array(
        [
            (
                column.units.ctypes.data, column.wanted.ctypes.data,
                (
                    base + starts[2], parts[2], base + starts[1] if parts[1] else 0, base + starts[0],
                    shape.kind, shape.width_bytes, shape.utf8, 0, 0, 0,
                ),
                len(column.units), 0,
            )
            for column, shape, (starts, parts) in zip(columns, shapes, places, strict=True)
        ],
        _COLUMN,
    )  # fmt: skip
    scratch = _scratch_of(_FIRST_SCRATCH_BYTES)
    kernels.f3_pick_columns(
        len(columns), ctypes.c_void_p(table.ctypes.data), descriptor, scratch, ctypes.c_uint64(len(scratch))
    )
    buffer = pa.py_buffer(memory)
    found: list[pa.Array | None] = []
    answers = zip(
        columns, shapes, places, table["fault"].tolist(), table["target"]["nulls"].tolist(),
        table["target"]["first_byte"].tolist(), strict=True,
    )  # fmt: skip
    for column, shape, (starts, parts), fault, nulls, text_bytes in answers:
        if fault or text_bytes > parts[2]:
            found.append(None)
            continue
        buffers = [buffer.slice(start, part_bytes) for start, part_bytes in zip(starts, parts, strict=True)]
        if not nulls:
            buffers[0] = None
        if shape.kind != TEXT:
            del buffers[1]
        found.append(pa.Array.from_buffers(column.arrow_type, len(column.wanted), buffers, nulls))
    return found


def lz4_bytes(kernels: Any, block: memoryview) -> int:
    """Return the decompressed size of an LZ4 block. For an invalid block, return more than any valid block has."""
    held = pa.py_buffer(block)
    return int(kernels.f3_lz4_bytes(ctypes.c_void_p(held.address), ctypes.c_uint64(held.size)))


def allocate(shape: Shape, rows: int, data_bytes: int, nullable: bool) -> tuple[Any, Any, Any]:
    """Allocate a column's buffers: validity (None without nulls), offsets (None for types without offsets) and values.
    The first offset is set to 0.

    Raises F3Error if the buffers exceed the limit for one array, or do not fit into memory.
    """
    values_bytes = check_size(shape, rows, data_bytes)
    try:
        validity = pa.allocate_buffer((rows + 7) // 8) if nullable else None
        offsets = pa.allocate_buffer((rows + 1) * shape.width_bytes) if shape.kind == TEXT else None
        values = pa.allocate_buffer(values_bytes)
    except MemoryError:
        raise F3Error(f"{rows} rows of {values_bytes} bytes in total do not fit into memory; read fewer rows") from None
    if offsets:
        ctypes.memset(offsets.address, 0, shape.width_bytes)
    return validity, offsets, values


def check_size(shape: Shape, rows: int, data_bytes: int) -> int:
    """Return the size in bytes of a column's values. Raises F3Error if it exceeds the limit for one array."""
    values_bytes = data_bytes if shape.kind == TEXT else rows * shape.width_bytes or (rows + 7) // 8
    if max(values_bytes, rows * shape.width_bytes) > MOST_ARRAY_BYTES:
        raise F3Error(f"{rows} rows of {values_bytes} bytes in total are too many for one array; read fewer at a time")
    if shape.kind == TEXT and shape.width_bytes == 4 and data_bytes > 2**31 - 1:
        raise F3Error(
            f"{data_bytes} bytes of strings do not fit into one array; read fewer rows, or store the column as "
            "large_string or large_binary"
        )
    return values_bytes
