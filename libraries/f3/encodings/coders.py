"""The protocol between the container and the code that turns arrays into payloads and back.

Files are written and read with `libraries.f3.encodings.unit_codec`; tests bring others. It separates the container
(where bytes are) from the encodings (what they mean).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import pyarrow as pa


class Encoded(Protocol):
    """The payload of one EncUnit, and the name of the module that decodes it."""

    @property
    def payload(self) -> bytes:
        """What is stored."""

    @property
    def module(self) -> str:
        """A key of `Coding.modules()`."""


class Decoder(Protocol):
    """One decoding module, ready to be used. Every fault of a payload is an F3Error."""

    def decode(self, payload: memoryview, arrow_type: pa.DataType, rows: int) -> pa.Array:
        """The array of one EncUnit."""

    def decode_into(self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
        """Consecutive EncUnits of one column as one contiguous array."""


class Coding(Protocol):
    """Encodings with their modules. A Python module can be one."""

    def encode(self, array: pa.Array, *, allow: frozenset[str] | None = None) -> Encoded:
        """One EncUnit of a flat array. Raises F3Error for what cannot be stored."""

    def modules(self) -> Mapping[str, bytes]:
        """The code of the decoding modules, by name."""

    def encoding_of(self, module: str, payload: memoryview) -> str:
        """What a payload of one of its modules is encoded as, in a word."""

    def Decoder(self, wasm: bytes, *, prefer: str = "native") -> Decoder:  # noqa: N802 - a class to whoever has it
        """The decoder that a file's embedded code stands for: its native twin, or the code itself."""


def default_coding() -> Coding:
    """The encodings of this package."""
    return cast(Coding, importlib.import_module("libraries.f3.encodings.unit_codec"))
