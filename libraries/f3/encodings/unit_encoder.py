"""EncUnits made of arrays: each encoded, compressed, and told with the module that decodes it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from libraries.f3.container import framing, metadata
from libraries.f3.container.compression import compress
from libraries.f3.container.metadata import EncUnit
from libraries.f3.encodings.coders import Coding, Encoded
from libraries.f3.errors import F3Error

MOST_UNIT_BYTES = 2**31
_LIST_ENCODINGS = frozenset(("constant", "packed", "runs", "delta", "dictionary", "patched", "widened"))
"""What presence and offsets of lists may be in: what is named is of the package's own module."""


class UnitEncoder:
    """Turns arrays into units, and knows which modules were needed: their ids count from 0 in order of use."""

    def __init__(self, coding: Coding, codec: str | None) -> None:
        """`coding` turns arrays into payloads, `codec` compresses those."""
        self._coding = coding
        self._codec = codec
        self._ids: dict[str, int] = {}

    def encoded(self, array: pa.Array) -> Encoded:
        """Before anything else is done to it."""
        return self._coding.encode(array)

    def unit(self, array: pa.Array) -> tuple[EncUnit, bytes]:
        """The unit of a flat array, and what is stored of it."""
        encoded = self._coding.encode(array)
        return self._packed(encoded.payload, len(array), encoded.module)

    def list_unit(self, present: pa.Array, offsets: pa.Array) -> tuple[EncUnit, bytes]:
        """The unit of a list's column: a unit has one decoder, so that both payloads are by the package's own."""
        first = self._coding.encode(present, allow=_LIST_ENCODINGS)
        second = self._coding.encode(offsets, allow=_LIST_ENCODINGS)
        return self._packed(framing.join([first.payload, second.payload]), len(present), first.module)

    def used_modules(self) -> list[bytes]:
        """The code of each module, by id."""
        code: Mapping[str, bytes] = self._coding.modules()
        return [code[name] for name in self._ids]

    def _packed(self, payload: bytes, rows: int, module: str) -> tuple[EncUnit, bytes]:
        stored, compression = compress(payload, self._codec)
        if len(stored) >= MOST_UNIT_BYTES:
            raise F3Error(f"{rows} rows take {len(stored)} bytes, more than an EncUnit can; lower rows_per_unit")
        wasm_id = self._ids.setdefault(module, len(self._ids))
        return EncUnit(len(stored), rows, metadata.CUSTOM_WASM, wasm_id, compression), stored
