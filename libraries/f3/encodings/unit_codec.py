"""Convert arrays to payloads (encoded bytes) and back: the public interface of F3's encodings.

`encode` turns a flat array into one EncUnit, the smallest part of a column that can be decoded. A `Decoder` decodes the
EncUnits that belong to one module of a file. It uses native code that is equivalent to the module if there is any, else
it runs the module. `register` adds an encoding, whose decoder can be any Wasm module with F3's guest interface.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.f3.columns.memory_layout import BITS, TEXT, shape_of
from libraries.f3.decoders import native
from libraries.f3.decoders.native import PickedRows
from libraries.f3.decoders.wasm import DEFAULT_LIMITS, Limits, Sandbox
from libraries.f3.encodings import encoders, versions
from libraries.f3.encodings.arithmetic import Numbers, Symbols
from libraries.f3.encodings.encoders import Choice
from libraries.f3.encodings.nodes import header, outermost
from libraries.f3.encodings.versions import CORE
from libraries.f3.errors import F3Error, Placed

NATIVE, WASM = "native", "wasm"
_SHORT_BYTES = 48
Encoder = Callable[[pa.Array], bytes | None]
"""Array -> payload of one EncUnit, or None if the encoding does not apply to the array."""


@dataclass(frozen=True)
class Encoded:
    """One EncUnit: its payload, and the name of the module that decodes it."""

    payload: bytes
    module: str


@dataclass(frozen=True)
class _Added:
    encode: Encoder
    wasm: bytes


_added: dict[str, _Added] = {}


def register(name: str, encode: Encoder, wasm: bytes) -> None:
    """Add an encoding.

    From then on `encode` tries the added encoder first for every EncUnit, and files with the encoding contain its Wasm
    module. Raises F3Error if the name is taken. Also raises F3Error if `wasm` is not a module with F3's interface,
    because files with such a module could not be read.
    """
    if name == CORE or name in _added:
        raise F3Error(f"an encoding named {name!r} exists; choose another name")
    if not wasm.startswith(b"\0asm"):
        raise F3Error(
            f"encoding {name!r}: its decoder must be a Wasm module, but does not begin with the bytes 00 61 73 6d"
        )
    if find_spec("wasmtime") is not None:
        with Placed(f"encoding {name!r}"):
            Sandbox(wasm, DEFAULT_LIMITS).prepare()
    _added[name] = _Added(encode, wasm)


def unregister(name: str) -> None:
    """Remove an added encoding. Files that use it stay readable. Raises F3Error if no added encoding has this name."""
    if _added.pop(name, None) is None:
        raise F3Error(f"no added encoding is named {name!r}; added encodings: {', '.join(_added) or 'none'}")


@cache
def _core() -> bytes:
    try:
        return (native.KERNELS / native.MODULE_NAME).read_bytes()
    except FileNotFoundError:
        raise F3Error(
            f"writing needs {native.MODULE_NAME}, which is not built: 'pip install ziglang', "
            "then 'python -m libraries.build'"
        ) from None


def modules() -> Mapping[str, bytes]:
    """Return the Wasm modules by name, this package's module first. Raises F3Error if that module was not built."""
    return MappingProxyType({CORE: _core()} | {name: added.wasm for name, added in _added.items()})


def encode_parts(parts: Sequence[pa.Array], *, allow: frozenset[str] | None = None) -> list[Encoded]:
    """Encode consecutive parts of a column as one EncUnit each, like `encode`.

    Strings share a symbol table, which is trained on all parts. Each EncUnit holds a copy of the table, so that it can
    be decoded alone.
    """
    symbols = None
    if len(parts) > 1 and shape_of(parts[0].type).kind == TEXT and (allow is None or "symbols" in allow):
        symbols = encoders.symbols_of(pa.concat_arrays(parts))
    return [encode(part, allow=allow, symbols=symbols) for part in parts]


def encode(array: pa.Array, *, allow: frozenset[str] | None = None, symbols: Symbols | None = None) -> Encoded:
    """Encode a flat array as one EncUnit. If the bytes of strings become symbols, use the given symbol table (None:
    train one).

    `allow` restricts the choice to some of encoders.NAMES and excludes added encodings. None allows all. Raises F3Error
    if the type cannot be stored.
    """
    shape = shape_of(array.type)
    if len(array) >= 1 << 32:
        raise F3Error(f"{len(array)} rows are too many for one EncUnit; at most {(1 << 32) - 1} fit")
    if allow is None:
        for name, added in _added.items():
            payload = added.encode(array)
            if isinstance(payload, bytes):
                return Encoded(payload, name)
            if payload is not None:
                raise F3Error(f"encoding {name!r}: its encoder returned {type(payload).__name__}, not bytes or None")
    choice = Choice(encoders.NAMES if allow is None else allow, symbols=symbols)
    nullable = array.null_count > 0
    valid = array.is_valid().to_numpy(zero_copy_only=False) if nullable else None
    parts = [] if valid is None else [encoders.encode_bits(valid.view(np.uint8), choice)]
    data_bytes = 0
    if shape.kind == TEXT:
        whole = _without_nulls(array) if nullable else array
        data_bytes = len(encoders.strings_of(whole).data)
        if data_bytes >= 1 << 31:
            many = f"{data_bytes} bytes of strings in {len(array)} rows are too many for one EncUnit"
            raise F3Error(f"{many}; at most {(1 << 31) - 1} fit. Use fewer rows")
        parts.append(encoders.encode_strings(whole, choice))
    elif shape.kind == BITS:
        parts.append(encoders.encode_bits(_bits_of(array), choice))
    else:
        parts.append(_encode_fixed(array, shape.width_bytes, valid, choice))
    width = shape.width_bytes if shape.kind not in (TEXT, BITS) else 0
    head = header(shape.kind, width, len(array), nullable=nullable, data_bytes=data_bytes)
    return Encoded(b"".join((head, *parts)), CORE)


def _without_nulls(array: pa.Array) -> pa.Array:
    """Fill the null slots of strings with content that takes few bytes. Readers ignore the content of null slots.

    If strings are short, a null slot repeats the string before it, because repeated values are stored as runs. If
    strings are long, a null slot becomes empty, because a reader has to make room for every string.
    """
    if array.nbytes <= _SHORT_BYTES * len(array):
        array = pc.fill_null_forward(array)
    return pc.fill_null(array, pa.scalar(b"", pa.binary()).cast(array.type)) if array.null_count else array


def encoding_of(module: str, payload: memoryview) -> str:
    """Return the name of the outermost encoding of a payload's values.

    For this package's module, docs/f3-encodings.md explains the names. For other modules it is the name of the added
    encoding. Raises F3Error for a payload that no encoder of this package writes.
    """
    if module != CORE:
        return module
    try:
        return outermost(payload).name.lower()
    except (struct.error, ValueError):
        raise F3Error("the payload is cut short, or its first node is invalid") from None


def _bits_of(array: pa.Array) -> Numbers:
    if len(array) == 0:
        return np.empty(0, np.uint8)
    packed = np.frombuffer(array.buffers()[1], np.uint8)
    bits: Numbers = np.unpackbits(packed, bitorder="little", count=array.offset + len(array))[array.offset :]
    return bits


def _encode_fixed(array: pa.Array, width: int, valid: Numbers | None, choice: Choice) -> bytes:
    wide = width > 8
    dtype = np.dtype(f"V{width}" if wide else f"<u{width}")
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        values = np.zeros(len(array), dtype)
    else:
        values = np.frombuffer(buffer, dtype, len(array), array.offset * width)
    if valid is not None:
        values = _filled(values, valid)
    if wide:
        return encoders.encode_wide(values, choice)
    if pa.types.is_floating(array.type) and width > 2:
        return encoders.encode_floats(values.view(f"<f{width}"), choice)
    signed = not pa.types.is_unsigned_integer(array.type)
    return encoders.encode_integers(values, choice, signed=signed)


def _filled(values: Numbers, valid: Numbers) -> Numbers:
    """Fill null slots with the value before them, and leading null slots with the first value. Repeated values compress
    well."""
    if not valid.any():
        return np.zeros(len(values), values.dtype)
    positions = np.where(valid, np.arange(len(values)), 0)
    np.maximum.accumulate(positions, out=positions)
    first = int(valid.argmax())
    positions[:first] = first
    filled: Numbers = values[positions]
    return filled


def _sandbox_of(wasm: bytes) -> Sandbox:
    """Return a sandbox for a module.

    All files with this package's own module share one sandbox, with memory that other files used before. Any other
    module gets a new sandbox, because it could keep what it read in one file and reveal it in the results of another.
    """
    try:
        is_own = wasm == _core()
    except F3Error:
        is_own = False  # The module was not built.
    return _own_sandbox(os.getpid()) if is_own else Sandbox(wasm, DEFAULT_LIMITS)


@cache
def _own_sandbox(process: int) -> Sandbox:
    # A forked process needs another one, because a thread of its parent may hold the lock.
    return Sandbox(_core(), DEFAULT_LIMITS)


class Decoder:
    """Decode the EncUnits of one module.

    If the native library exists and decodes the version that the module states, the library decodes. Otherwise the
    module itself runs in a sandbox. The statement is not verified: if a module states a wrong version, its payloads are
    decoded as that version, unless `prefer` is "wasm". Threads may share a decoder; in the sandbox they take turns.
    """

    def __init__(
        self, wasm: bytes, *, prefer: Literal["native", "wasm"] = "native", limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """Store the arguments; nothing is compiled yet. `limits` apply to the sandbox."""
        is_native = prefer == NATIVE and versions.NATIVE.decodes(versions.version_of(wasm))
        self._kernels = native.library() if is_native else None
        self._sandbox = _sandbox_of(wasm) if limits == DEFAULT_LIMITS else Sandbox(wasm, limits)

    @property
    def how(self) -> str:
        """'native' if the native library decodes, 'wasm' if the module runs."""
        return WASM if self._kernels is None else NATIVE

    @property
    def picks_rows(self) -> bool:
        """Whether `pick` can be called. Raises F3Error if the module does not have F3's interface."""
        return self._kernels is not None or self._sandbox.picks_rows

    @property
    def reads_files(self) -> bool:
        """Whether `pick` reads the bytes of few rows from the file itself."""
        return self._kernels is not None

    def pick(self, units: np.ndarray, descriptor: int, wanted: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        """Decode some rows of EncUnits, with the arguments of `native.pick`. Unless `reads_files`, all payloads have to
        be in memory. Raises F3Error and OSError."""
        if self._kernels is not None:
            return native.pick(self._kernels, units, descriptor, wanted, arrow_type)
        payloads = [
            memoryview(pa.foreign_buffer(int(unit["memory"]), int(unit["size_bytes"]))).cast("B") for unit in units
        ]
        parts = [wanted[unit["first"] : unit["first"] + unit["count"]] for unit in units]
        return self._sandbox.pick(payloads, arrow_type, units["rows"].tolist(), parts)

    def pick_columns(self, columns: Sequence[PickedRows], descriptor: int) -> list[pa.Array | None]:
        """Decode some rows of several columns by one call (`native.pick_columns`). Return None for columns that `pick`
        has to read."""
        if self._kernels is None:
            return [None] * len(columns)
        return native.pick_columns(self._kernels, columns, descriptor)

    def prepare(self) -> None:
        """Compile the module or load it from the cache. Do nothing if the native library decodes.

        Raises F3Error if the module does not have F3's interface.
        """
        if self._kernels is None:
            self._sandbox.prepare()

    def decode(self, payload: memoryview | bytes, arrow_type: pa.DataType, rows: int) -> pa.Array:
        """Decode one EncUnit. Raises F3Error."""
        return self.decode_into([payload], arrow_type, [rows])

    def decode_into(
        self, payloads: Sequence[memoryview | bytes], arrow_type: pa.DataType, rows: Sequence[int]
    ) -> pa.Array:
        """Decode consecutive EncUnits of a column into one array. Raises F3Error."""
        views = [memoryview(payload) for payload in payloads]
        if not views:
            return pa.array([], arrow_type)
        if self._kernels is not None:
            return native.decode(self._kernels, views, arrow_type, rows)
        return self._sandbox.decode(views, arrow_type, rows)
