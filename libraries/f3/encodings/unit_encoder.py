"""Make EncUnits (the smallest parts of a column that can be decoded) from arrays: encode, compress, and record which
modules decode the EncUnits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from libraries.f3.columns.memory_layout import TEXT, shape_of
from libraries.f3.container import framing, metadata
from libraries.f3.container.compression import ADAPTIVE, compress, zstd_bytes
from libraries.f3.container.metadata import EncUnit
from libraries.f3.encodings.coders import Coding, Encoded
from libraries.f3.encodings.encoders import FOR_CODECS, strings_of
from libraries.f3.encodings.versions import CORE
from libraries.f3.errors import F3Error

MOST_UNIT_BYTES = 2**31
_LEAST_TEXT_BYTES, _SAMPLED_TEXT_BYTES = 1 << 14, 1 << 16
_MUCH_SMALLER = 0.33
"""Texts are left to zstd if zstd packs a sample to less than this share of the sample's size. Symbols pack URLs to 0.4
to 0.5."""
_LIST_ENCODINGS = frozenset(("constant", "packed", "runs", "delta", "dictionary", "patched", "widened"))
"""Encodings that are allowed in the two payloads of a unit of lists: which lists are present, and their offsets. One
module has to decode both payloads, and this package's module can decode all of these encodings."""


class UnitEncoder:
    """Makes units from arrays, and records the modules that the units need. Module ids count from 0 in the order of
    first use."""

    def __init__(self, coding: Coding, codec: str | None) -> None:
        """Use `coding` to turn arrays into payloads, and `codec` to compress the payloads.

        Raises F3Error if this package's module was not built.
        """
        self._coding = coding
        # Added encodings are tried before any choice between symbols and zstd.
        self._may_leave_out_symbols = codec == ADAPTIVE and set(coding.modules()) == {CORE}
        self._codec = codec
        self._ids: dict[str, int] = {}
        self._kept: dict[int, tuple[pa.Array, Encoded]] = {}

    def size_of(self, array: pa.Array) -> int:
        """Return the size of an array's payload in bytes, uncompressed."""
        return len(self._coding.encode(array).payload)

    def kept_size_of(self, array: pa.Array) -> int:
        """Return the same as `size_of`, and keep the payload until `forget` is called, in case the array becomes a
        unit."""
        encoded = self._coding.encode(array)
        self._kept[id(array)] = (array, encoded)
        return len(encoded.payload)

    def forget(self) -> None:
        """Drop the payloads that were kept."""
        self._kept.clear()

    def unit(self, array: pa.Array) -> tuple[EncUnit, bytes]:
        """Return the unit of a flat array, and its stored bytes."""
        return self.units([array])[0]

    def units(self, parts: Sequence[pa.Array]) -> list[tuple[EncUnit, bytes]]:
        """Return the units of consecutive parts of a column, and their stored bytes."""
        if len(parts) == 1 and id(parts[0]) in self._kept:
            return self._all_packed(parts, [self._kept.pop(id(parts[0]))[1]])
        if not self._is_better_packed(parts[len(parts) // 2]):
            return self._all_packed(parts, self._encoded(parts, None))
        units = self._all_packed(parts, self._encoded(parts, FOR_CODECS))
        if all(unit.compression != metadata.UNCOMPRESSED for unit, _ in units):
            return units
        # The codec found less in the payloads than in the texts, because dictionaries took the repetitions out.
        others = self._all_packed(parts, self._encoded(parts, None))
        return [min(pair, key=lambda made: made[0].size_bytes) for pair in zip(units, others, strict=True)]

    def _encoded(self, parts: Sequence[pa.Array], allow: frozenset[str] | None) -> Sequence[Encoded]:
        if len(parts) == 1:
            return [self._coding.encode(parts[0], allow=allow)]
        return self._coding.encode_parts(parts, allow=allow)

    def _all_packed(self, parts: Sequence[pa.Array], encoded: Sequence[Encoded]) -> list[tuple[EncUnit, bytes]]:
        return [self._packed(each.payload, len(part), each.module) for part, each in zip(parts, encoded, strict=True)]

    def _is_better_packed(self, array: pa.Array) -> bool:
        """Return whether texts should be left to zstd, without symbols (codes for strings of up to eight bytes).

        Symbols hide repetitions from zstd, but are decoded two to three times as fast. So zstd must pack a sample much
        better.
        """
        if not self._may_leave_out_symbols or shape_of(array.type).kind != TEXT or array.nbytes < _LEAST_TEXT_BYTES:
            return False
        text = strings_of(array.drop_null() if array.null_count else array).data
        start = max(len(text) - _SAMPLED_TEXT_BYTES, 0) // 2
        sample = text[start : start + _SAMPLED_TEXT_BYTES]
        return len(sample) > 0 and zstd_bytes(sample) < _MUCH_SMALLER * len(sample)

    def list_unit(self, present: pa.Array, offsets: pa.Array) -> tuple[EncUnit, bytes]:
        """Return the unit of a column of lists, which holds two payloads: which lists are present, and their offsets.

        A unit has only one decoder, so both payloads use this package's module.
        """
        first = self._coding.encode(present, allow=_LIST_ENCODINGS)
        second = self._coding.encode(offsets, allow=_LIST_ENCODINGS)
        return self._packed(framing.join([first.payload, second.payload]), len(present), first.module)

    def used_modules(self) -> list[bytes]:
        """Return the code of each module, by id."""
        code: Mapping[str, bytes] = self._coding.modules()
        return [code[name] for name in self._ids]

    def _packed(self, payload: bytes, rows: int, module: str) -> tuple[EncUnit, bytes]:
        stored, compression = compress(payload, self._codec)
        if len(stored) >= MOST_UNIT_BYTES:
            raise F3Error(f"{rows} rows take {len(stored)} bytes, more than an EncUnit can hold; lower rows_per_unit")
        wasm_id = self._ids.setdefault(module, len(self._ids))
        return EncUnit(len(stored), rows, metadata.CUSTOM_WASM, wasm_id, compression), stored
