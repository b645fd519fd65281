"""Files in the form that the original prototype writes, made from the specification without this package's writer.

Payloads use the plain coding, bare or inside a blob of the original's built-in encoding. The tests check where
`libraries/f3` looks for bytes and how it combines them, which needs no real decoder module.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import pyarrow as pa
import xxhash
import zstandard

from libraries import f3
from libraries.f3.tests import plain_coding

CASCADE, CUSTOM_WASM = 0, 255
FLAT, LIST, STRUCT, PUSHED_DOWN = 0, 1, 2, 3
NO_DICTIONARY, LOCAL, SHARED = 1, 2, 3


# --- FlatBuffers from plain values ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A scalar and its width in bytes."""

    value: int
    size_bytes: int


@dataclass(frozen=True)
class Numbers:
    """A vector of scalars."""

    values: Sequence[int]
    size_bytes: int


Fields = dict[int, Any]
"""Slot of the specification -> Number, Numbers, bytes, Fields (a table), or a list of Fields or texts."""


def u8(value: int) -> Number:
    return Number(value, 1)


def u32(value: int) -> Number:
    return Number(value, 4)


def u64(value: int) -> Number:
    return Number(value, 8)


def packed(fields: Fields) -> bytes:
    """Return a buffer with that root table."""
    builder = flatbuffers.Builder(256)
    builder.Finish(_made(builder, fields))
    return bytes(builder.Output())


def _made(builder: flatbuffers.Builder, value: Any) -> int:
    if isinstance(value, bytes):
        return builder.CreateByteVector(value)
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, Numbers):
        builder.StartVector(value.size_bytes, len(value.values), value.size_bytes)
        for number in reversed(value.values):
            _prepend(builder, value.size_bytes)(number)
        return builder.EndVector()
    if isinstance(value, list):
        made = [_made(builder, each) for each in value]
        builder.StartVector(4, len(made), 4)
        for offset in reversed(made):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()
    offsets = {slot: _made(builder, each) for slot, each in value.items() if not isinstance(each, Number)}
    builder.StartObject(max(value, default=-1) + 1)
    for slot, each in value.items():
        if isinstance(each, Number):
            _prepend(builder, each.size_bytes)(each.value)
            builder.Slot(slot)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
    return builder.EndObject()


def _prepend(builder: flatbuffers.Builder, size_bytes: int) -> Any:
    return {1: builder.PrependUint8, 2: builder.PrependUint16, 4: builder.PrependUint32, 8: builder.PrependUint64}[
        size_bytes
    ]


# --- payloads ------------------------------------------------------------------------------------------------------


def blob(data: bytes, rows: int = 1) -> bytes:
    """Return a blob of the built-in encoding with one buffer (specification 5.1 and 5.2)."""
    dtype = _message({0: u8(0), 1: u8(3), 2: {}})
    padding = -len(data) % 64
    buffers = [{0: u64(len(data)), 1: Number(padding, 2)}] if data else []
    array = _message({0: u8(0), 1: u8(1), 2: {1: u64(rows), 2: buffers}})
    front = struct.pack("<I", len(dtype)) + dtype
    return front + bytes(-len(front) % 64) + array + data + bytes(padding)


def _message(fields: Fields) -> bytes:
    table = packed(fields)
    padded = table + bytes(-(len(table) + 4) % 64)
    return struct.pack("<I", len(padded)) + padded


def plain(values: Any, arrow_type: pa.DataType) -> bytes:
    return plain_coding.encode(pa.array(values, arrow_type)).payload


def streamed_zstd(data: bytes) -> bytes:
    """Return a zstd frame that does not state its size, as a streaming encoder writes it."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def prepended_lz4(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + pa.compress(data, codec="lz4_raw", asbytes=True)


BLOBS = b"\0asm\1\0\0\0 blobs of plain numbers"


class Coding:
    """The plain coding, together with a module whose payloads are blobs that contain the plain coding."""

    encode, modules = staticmethod(plain_coding.encode), staticmethod(plain_coding.modules)

    class Decoder(plain_coding.Decoder):
        def __init__(self, wasm: bytes, *, prefer: str = "native") -> None:
            self._blobs = wasm == BLOBS
            super().__init__(plain_coding.MODULES["plain"] if self._blobs else wasm, prefer=prefer)

        def decode(self, payload: memoryview, arrow_type: pa.DataType, rows: int) -> pa.Array:
            if not self._blobs:
                return super().decode(payload, arrow_type, rows)
            data = bytes(payload)
            start = 64 + struct.unpack_from("<I", data)[0]
            if start + 4 > len(data):
                raise f3.F3Error("a blob that ends before its array")
            start += 4 + struct.unpack_from("<I", data, start)[0]
            # Strip the padding after the buffer. It is not part of the payload.
            last = max(end for end in range(start, max(start, len(data)) + 1) if end == start or data[end - 1])
            for end in range(last, len(data) + 1):
                try:
                    return super().decode(memoryview(data[start:end]), arrow_type, rows)
                except f3.F3Error:
                    continue
            raise f3.F3Error("no plain payload in the blob")


# --- files ---------------------------------------------------------------------------------------------------------


def unit(stored: bytes, rows: int, *, module: int | None = 0, encoding: int = CUSTOM_WASM, compression: int = 0) -> Any:
    """Return the stored bytes of a unit, and the table that describes the unit."""
    # FlatBuffers omit default values, so module 0 is an empty table.
    wasm: Fields = {1: Numbers((), 4)} | ({0: u32(module)} if module else {})
    described: Fields = {} if encoding == CASCADE else {0: u8(encoding)}
    if module is not None:
        described[1] = wasm
    table: Fields = {0: u32(len(stored)), 1: described, 2: u32(rows)}
    if compression:
        table[3] = u8(compression)
    return stored, table


@dataclass
class Original:
    """Builds a file: IOUnits in the order of the calls, then all other sections."""

    schema: pa.Schema
    tree: list[Fields] | None = None
    modules: Sequence[bytes] = (plain_coding.MODULES["plain"], plain_coding.MODULES["text"])
    data: bytes = b""
    groups: list[tuple[int, list[list[Fields]]]] = field(default_factory=list)
    dictionary_chunks: list[Fields] = field(default_factory=list)
    dictionary_positions: list[Sequence[int]] = field(default_factory=list)
    dictionary_types: list[pa.DataType] = field(default_factory=list)

    def chunk(
        self,
        units: Sequence[tuple[bytes, Fields]],
        rows: int,
        *,
        scope: int = NO_DICTIONARY,
        dictionary: int = 0,
        checksum: bool | int = False,
        ordinals: Sequence[int] = (),
    ) -> Fields:
        """Store an IOUnit and return its description. `checksum`: whether it has one, or a wrong one."""
        stored = b"".join(each for each, _ in units)
        scopes: dict[int, Fields] = {
            NO_DICTIONARY: {}, LOCAL: {0: Numbers(ordinals, 4)}, SHARED: {0: u32(dictionary)} if dictionary else {},
        }  # fmt: skip
        described: Fields = {
            0: u64(len(self.data)),
            1: u32(len(stored)),
            2: u64(rows),
            3: u8(scope),
            4: scopes[scope],
            5: [table for _, table in units],
        }
        if checksum:
            described[6] = u64(xxhash.xxh64_intdigest(stored) if checksum is True else checksum)
        self.data += stored
        return described

    def dictionary(self, chunks: Sequence[int], arrow_type: pa.DataType) -> int:
        """Make a shared dictionary from IOUnits and return its id."""
        self.dictionary_positions.append(chunks)
        self.dictionary_types.append(arrow_type)
        return len(self.dictionary_positions) - 1

    def group(self, rows: int, *columns: list[Fields]) -> Original:
        """End a row group. The given IOUnits are those of its physical columns."""
        self.groups.append((rows, list(columns)))
        return self

    def bytes(self, **footer: Any) -> bytes:
        """Return the whole file; `footer` replaces slots ('slot_3' = ...)."""
        out = self.data
        placed = []
        for module in self.modules:
            placed.append({0: u64(len(out)), 1: u32(len(module))})
            out += module
        directory = packed({0: placed})
        directory_start = len(out)
        out += directory
        metadata_start = len(out)
        groups = []
        for _, columns in self.groups:
            sections = []
            for chunks in columns:
                described = packed({0: chunks})
                sections.append({0: u64(len(out)), 1: u32(len(described))})
                out += described
            groups.append({0: sections})
        schema = message(self.schema)
        tree = [{1: []}] * len(self.schema) if self.tree is None else self.tree
        dictionaries = pa.schema([pa.field("", each, nullable=False) for each in self.dictionary_types])
        slots: Fields = {
            0: schema,
            1: {0: u8(STRUCT), 1: tree},
            2: {
                0: Numbers([rows for rows, _ in self.groups], 4),
                1: Numbers([0] * len(groups), 8),
                2: Numbers([0] * len(groups), 4),
                3: groups,
            },
            3: {
                0: ["WASMBinaries"],
                1: Numbers([directory_start], 8),
                2: Numbers([len(directory)], 4),
                3: Numbers([0], 1),
            },
            4: [{0: u8(CUSTOM_WASM), 1: {0: u64(1)}}, {1: {1: u64(21)}}],
            5: {
                0: self.dictionary_chunks,
                1: [{0: Numbers(ids, 4)} for ids in self.dictionary_positions],
                2: message(dictionaries),
            },
        }
        slots |= {int(name.removeprefix("slot_")): value for name, value in footer.items()}
        described = packed({slot: value for slot, value in slots.items() if value is not None})
        out += described
        sizes = struct.pack("<IIBB", len(out) - metadata_start, len(described), 0, 0)
        checksums = struct.pack("<QQ", xxhash.xxh64_intdigest(out), xxhash.xxh64_intdigest(schema))
        return out + sizes + checksums + struct.pack("<HH2s", 0, 1, b"F3")


def message(schema: pa.Schema) -> bytes:
    """Return the IPC message without its length prefix (specification 3.1). arrow-rs writes no padding after it."""
    return schema.serialize().to_pybytes()[8:]


def opened(data: bytes, **parameters: Any) -> f3.File:
    return f3.open(io.BytesIO(data), **{"coding": Coding} | parameters)
