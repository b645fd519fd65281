"""A minimal coding in Python, to test the container without the real encodings.

A payload is the number of rows, one byte per row that states whether the value is present, and the values. Fixed-width
values are unencoded; texts are lengths and bytes. Texts use a second module, so that files contain several modules.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from libraries.f3.errors import F3Error

MODULES = {"plain": b"\0asm\1\0\0\0 plain", "text": b"\0asm\1\0\0\0 text"}


@dataclass(frozen=True)
class Encoded:
    payload: bytes
    module: str


def encode(array: pa.Array, *, allow: frozenset[str] | None = None) -> Encoded:
    rows = len(array)
    present = np.asarray(array.is_valid()).astype(np.uint8)
    header = struct.pack("<I", rows) + present.tobytes()
    if _is_text(array.type):
        values = [value or b"" for value in array.cast(_bytes_like(array.type)).to_pylist()]
        lengths = np.array([len(value) for value in values], np.int64)
        return Encoded(header + lengths.tobytes() + b"".join(values), "text")
    if pa.types.is_boolean(array.type):
        return Encoded(header + np.asarray(array.fill_null(False)).astype(np.uint8).tobytes(), "plain")
    width = array.type.bit_width // 8
    start = array.offset * width
    data = array.buffers()[1]
    return Encoded(header + (data.to_pybytes()[start : start + rows * width] if data else b""), "plain")


def encode_parts(parts: Sequence[pa.Array], *, allow: frozenset[str] | None = None) -> list[Encoded]:
    return [encode(part, allow=allow) for part in parts]


def modules() -> Mapping[str, bytes]:
    return MODULES


class Decoder:
    how = "native"
    picks_rows = reads_files = False

    def __init__(self, wasm: bytes, *, prefer: str = "native") -> None:
        if wasm not in MODULES.values():
            raise F3Error("an unknown module")
        self._text = wasm == MODULES["text"]

    def decode(self, payload: memoryview, arrow_type: pa.DataType, rows: int) -> pa.Array:
        data = bytes(payload)
        if len(data) < 4 + rows or struct.unpack_from("<I", data)[0] != rows:
            raise F3Error(f"a payload of {len(data)} bytes is not one of {rows} rows")
        if self._text != _is_text(arrow_type):
            raise F3Error(f"{arrow_type} does not belong to this module")
        present = np.frombuffer(data, np.uint8, rows, 4).astype(bool)
        bitmap = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
        values = data[4 + rows :]
        if self._text:
            return _texts(values, arrow_type, rows, present)
        if pa.types.is_boolean(arrow_type):
            if len(values) != rows:
                raise F3Error("booleans of another length")
            bits = np.packbits(np.frombuffer(values, np.uint8), bitorder="little").tobytes()
            return pa.Array.from_buffers(arrow_type, rows, [bitmap, pa.py_buffer(bits)])
        if len(values) != rows * arrow_type.bit_width // 8:
            raise F3Error(f"{len(values)} bytes are not {rows} values of {arrow_type}")
        return pa.Array.from_buffers(arrow_type, rows, [bitmap, pa.py_buffer(values)])

    def decode_into(self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
        return pa.concat_arrays(
            [self.decode(payload, arrow_type, count) for payload, count in zip(payloads, rows, strict=True)]
        )


def _texts(values: bytes, arrow_type: pa.DataType, rows: int, present: np.ndarray) -> pa.Array:
    if len(values) < 8 * rows:
        raise F3Error("texts without lengths")
    lengths = np.frombuffer(values, np.int64, rows)
    if (lengths < 0).any() or (lengths > len(values)).any() or lengths.sum() != len(values) - 8 * rows:
        raise F3Error("texts of other lengths")
    ends = np.cumsum(lengths)
    found = [
        values[8 * rows + end - length : 8 * rows + end] if there else None
        for end, length, there in zip(ends, lengths, present, strict=True)
    ]
    try:
        array = pa.array(found, _bytes_like(arrow_type)).cast(arrow_type)
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise F3Error(str(error)) from None
    return array


def _is_text(arrow_type: pa.DataType) -> bool:
    return any(
        check(arrow_type)
        for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def _bytes_like(arrow_type: pa.DataType) -> pa.DataType:
    large = pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type)
    return pa.large_binary() if large else pa.binary()
