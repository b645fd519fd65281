"""The protocols between the container, which stores payloads, and the encodings, which create and interpret payloads.

A payload is the encoded content of an EncUnit, the smallest part of a column that can be decoded. Files use
`libraries.f3.encodings.unit_codec`. Tests supply other implementations.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from libraries.f3.decoders.native import PickedRows


class Encoded(Protocol):
    """The payload of one EncUnit, and the name of the module that decodes it."""

    @property
    def payload(self) -> bytes:
        """The bytes to store."""

    @property
    def module(self) -> str:
        """A key of `Coding.modules()`."""


class Decoder(Protocol):
    """A decoding module, ready to use. Its methods raise F3Error for every invalid payload."""

    @property
    def how(self) -> str:
        """'native' if native code of this package decodes, 'wasm' if the module's code runs."""

    @property
    def picks_rows(self) -> bool:
        """Whether `pick` can be called. Raises F3Error if the module does not have F3's interface."""

    @property
    def reads_files(self) -> bool:
        """Whether `pick` reads the bytes of few rows from the file itself. Otherwise payloads have to be in memory."""

    def pick(self, units: np.ndarray, descriptor: int, wanted: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        """Return some rows of EncUnits, without decoding the others (`decoders.native.pick`)."""

    def pick_columns(self, columns: Sequence[PickedRows], descriptor: int) -> list[pa.Array | None]:
        """Return some rows of several columns. Return None for a column that `pick` has to read."""

    def decode(self, payload: memoryview, arrow_type: pa.DataType, rows: int) -> pa.Array:
        """Return the array of one EncUnit."""

    def decode_into(self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
        """Return one array for consecutive EncUnits of a column."""


class Coding(Protocol):
    """Encodings and the modules that decode them. A Python module can implement this protocol, as `unit_codec` does."""

    def encode(self, array: pa.Array, *, allow: frozenset[str] | None = None) -> Encoded:
        """Encode a flat array as one EncUnit. `allow` limits the encodings to these names (None: all). Raises F3Error
        if the array cannot be stored."""

    def encode_parts(self, parts: Sequence[pa.Array], *, allow: frozenset[str] | None = None) -> Sequence[Encoded]:
        """Encode consecutive parts of a column as one EncUnit each. The EncUnits may share what is learned from all
        parts, such as a symbol table."""

    def modules(self) -> Mapping[str, bytes]:
        """Return the code of the decoding modules, by name."""

    def encoding_of(self, module: str, payload: memoryview) -> str:
        """Return the name of the encoding of a payload that one of the modules decodes."""

    def Decoder(self, wasm: bytes, *, prefer: str = "native") -> Decoder:  # noqa: N802 - implemented by a class
        """Return the decoder for a file's embedded code.

        It runs a native equivalent of the code, or the code itself.
        """


def default_coding() -> Coding:
    """Return the encodings of this package."""
    return cast(Coding, importlib.import_module("libraries.f3.encodings.unit_codec"))
