"""The native library of the kernels: found, called, and its faults put into words.

It lies beside their source where the package's build could make it (libraries/build.py); without it `library()` is
None, files are decoded by Wasm and encoded by numpy. Payloads may be hostile: the library checks them; here only the
buffers that it writes to are made, and the lock of the interpreter is free while it works.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from libraries.f3.columns.memory_layout import TEXT, Shape, shape_of
from libraries.f3.errors import F3Error

KERNELS = Path(__file__).parents[1] / "kernels"
"""Where the sources lie, and what the build makes of them."""
LIBRARY_NAME = {"darwin": "libf3_kernels.dylib", "win32": "f3_kernels.dll"}.get(sys.platform, "libf3_kernels.so")
MODULE_NAME = "core.wasm"
"""The module of the same kernels that files carry."""
MOST_ARRAY_BYTES = 1 << 32
"""Of one array: what a file says of its rows is not believed beyond that."""
_FIRST_SCRATCH_BYTES, _KEPT_SCRATCH_BYTES, _MOST_SCRATCH_BYTES = 1 << 22, 1 << 26, 1 << 30

FAULTS = {
    1: "the payload is cut short",
    2: "the payload has a node, width or count that there is none of",
    3: "the payload has an index that leads outside",
    4: "the payload has too many nodes inside each other",
    5: "the payload asks for more work than its rows call for",
    6: "the payload is of other rows or another type than the metadata say",
    7: "the payload has a string that is not UTF-8",
    8: "the payload needs more memory than any honest one",
}
"""What the kernels answer, in words; the numbers are those of kernels.h."""
_NO_ROOM = 8
_RETURN_U64 = (
    "f3_pack", "f3_training_bytes", "f3_to_symbols", "f3_decimals_64", "f3_decimals_32", "f3_lz4_bytes",
)  # fmt: skip
NOT_BUILT = (
    "F3's native library is not built: files are read by the Wasm modules in them and written by numpy, both slower\n"
    "  'pip install ziglang', then 'python -m libraries.build' builds it"
)


class DecodeTarget(ctypes.Structure):
    """`struct target` of kernels.h: where the values of a column go."""

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
    """The native kernels; None, with a warning once, where they were not built for this machine."""
    try:
        loaded = ctypes.CDLL(str(KERNELS / LIBRARY_NAME))
        for name in _RETURN_U64:
            loaded[name].restype = ctypes.c_uint64
    except (OSError, AttributeError):
        # The second is what the library of an older version ends in.
        warnings.warn(NOT_BUILT, RuntimeWarning, stacklevel=_callers_level())
        return None
    return loaded


def _callers_level() -> int:
    """How many calls up the one is that this package was called by: a warning shows that line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(str(KERNELS.parent)):
        level, frame = level + 1, frame.f_back
    return level


_scratch = threading.local()


def _scratch_of(size_bytes: int) -> ctypes.Array[ctypes.c_char]:
    """Memory that stays with the thread, at least of that size; as much as few files ask for goes with the call."""
    if size_bytes > _KEPT_SCRATCH_BYTES:
        return ctypes.create_string_buffer(size_bytes)
    kept: ctypes.Array[ctypes.c_char] | None = getattr(_scratch, "memory", None)
    if kept is None or len(kept) < size_bytes:
        kept = _scratch.memory = ctypes.create_string_buffer(size_bytes)
    return kept


def decode(kernels: Any, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
    """The EncUnits of one column, one after the other, as one array. Raises F3Error for what no encoder writes."""
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


def lz4_bytes(kernels: Any, block: memoryview) -> int:
    """How many bytes an LZ4 block unpacks to; more than any can for what is none."""
    held = pa.py_buffer(block)
    return int(kernels.f3_lz4_bytes(ctypes.c_void_p(held.address), ctypes.c_uint64(held.size)))


def allocate(shape: Shape, rows: int, data_bytes: int, nullable: bool) -> tuple[Any, Any, Any]:
    """Buffers for a column: validity or None, offsets (the first is set) or None, values. Raises F3Error when they
    would be larger than any array may be."""
    values_bytes = check_size(shape, rows, data_bytes)
    try:
        validity = pa.allocate_buffer((rows + 7) // 8) if nullable else None
        offsets = pa.allocate_buffer((rows + 1) * shape.width_bytes) if shape.kind == TEXT else None
        values = pa.allocate_buffer(values_bytes)
    except MemoryError:
        raise F3Error(f"{rows} rows of {values_bytes} bytes together do not fit into memory; read fewer") from None
    if offsets:
        ctypes.memset(offsets.address, 0, shape.width_bytes)
    return validity, offsets, values


def check_size(shape: Shape, rows: int, data_bytes: int) -> int:
    """How many bytes the values of a column take. Raises F3Error when these are more than any array may have."""
    values_bytes = data_bytes if shape.kind == TEXT else rows * shape.width_bytes or (rows + 7) // 8
    if max(values_bytes, rows * shape.width_bytes) > MOST_ARRAY_BYTES:
        raise F3Error(f"{rows} rows of {values_bytes} bytes together are too many for one array; read fewer at a time")
    if shape.kind == TEXT and shape.width_bytes == 4 and data_bytes > 2**31 - 1:
        raise F3Error(
            f"{data_bytes} bytes of strings do not fit into one array; read fewer rows, or store large_string"
        )
    return values_bytes
