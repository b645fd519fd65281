"""Convert the bytes of units to arrays: decompress, decode, look up in dictionaries (specification sections 4 and 5).

A unit is an EncUnit (the smallest part of a column that can be decoded), or a local dictionary followed by indices.
`libraries.f3.columns.plan` combines the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from libraries.f3.columns.dictionaries import in_first_appearance_order, index_type, looked_up
from libraries.f3.columns.memory_layout import TEXT, shape_of
from libraries.f3.columns.shredding import TooLongError
from libraries.f3.container import framing, metadata
from libraries.f3.container.compression import decompress
from libraries.f3.container.contents import Contents, Held
from libraries.f3.container.faults import not_unpacked, wrong_pair
from libraries.f3.container.metadata import EncUnit
from libraries.f3.container.units import Unit, key_of
from libraries.f3.decoders import native
from libraries.f3.errors import F3Error

_MOST_SHORT_BYTES = 2**31 - 1
"""Maximum bytes of strings with 32-bit offsets."""
_MOST_RATIO = 1024
"""Largest ratio of decoded to stored bytes that is accepted if the result has to be split into several arrays."""


class Values:
    """Converts units to arrays. The bytes of the units have to be in memory."""

    def __init__(self, contents: Contents, held: Held) -> None:
        self._contents, self._held = contents, held

    def payloads(self, unit: Unit) -> Iterator[tuple[EncUnit, memoryview]]:
        """Yield each EncUnit of a unit with its payload (encoded bytes): the local dictionary, if there is one, then
        the values."""
        if unit.dictionary is not None:
            yield unit.dictionary, self._payload(unit, unit.key[0], unit.dictionary)
        yield unit.values, self._payload(unit, unit.start, unit.values)

    def array(self, arrow_type: pa.DataType, units: Sequence[Unit]) -> pa.Array:
        """Return the values of a column's units as one array.

        Raises TooLongError if the values do not fit into one array, and F3Error for other faults.
        """
        arrays: list[pa.Array] = []
        # Payloads of units without rows are ignored.
        for (scope, number, _), run in groupby((unit for unit in units if unit.rows), key=lambda unit: unit.kind):
            members = list(run)
            if scope == metadata.LOCAL_DICTIONARY:
                arrays += [self._local(arrow_type, unit) for unit in members]
            elif scope == metadata.SHARED_DICTIONARY:
                arrays.append(self._looked_up(arrow_type, self._dictionary(number, arrow_type), members))
            else:
                arrays.append(self._run(arrow_type, members))
        if len(arrays) == 1:
            return arrays[0]
        try:
            return pa.concat_arrays(arrays) if arrays else pa.array([], arrow_type)
        except pa.ArrowInvalid as error:
            raise TooLongError(str(error)) from None

    def payload(self, unit: Unit) -> memoryview:
        """Return the payload of a unit's values."""
        return self._payload(unit, unit.start, unit.values)

    def picked(self, arrow_type: pa.DataType, unit: Unit) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
        """Return how to read some rows of units of the same kind as `unit`: the type that they store, and a function
        that turns stored rows into values. Units with a shared dictionary store indices."""
        scope, number, _ = unit.kind
        if scope != metadata.SHARED_DICTIONARY:
            return arrow_type, lambda stored: stored
        values = self._dictionary(number, arrow_type)
        if not len(values):
            return index_type(0), lambda indices: pa.nulls(len(indices), arrow_type)
        return index_type(len(values)), partial(looked_up, values)

    def lists(
        self, list_type: pa.DataType, units: Sequence[Unit], count: int
    ) -> tuple[pa.Array, list[np.ndarray], list[memoryview]]:
        """Return which lists are present, the offsets of each unit, and the last payload of each unit.

        A unit consists of `count` payloads. If there are three, the last one holds the items.
        """
        offsets_type = pa.int64() if pa.types.is_large_list(list_type) else pa.int32()
        present: list[pa.Array] = []
        parts: list[np.ndarray] = [np.empty(0, offsets_type.to_pandas_dtype())] * len(units)
        rest: list[memoryview] = [memoryview(b"")] * len(units)
        filled = [place for place, unit in enumerate(units) if unit.rows]
        for (scope, _, _), run in groupby(filled, key=lambda place: units[place].kind):
            if scope != metadata.NO_DICTIONARY:
                raise F3Error("the EncUnits of lists must not have a dictionary; only flat values can have one")
            places = list(run)
            members = [units[place] for place in places]
            payloads = [framing.split(self._payload(unit, unit.start, unit.values), count) for unit in members]
            rows = [unit.rows for unit in members]
            present.append(self._together(members[0], [each[0] for each in payloads], pa.bool_(), rows))
            edges = [each + 1 for each in rows]
            offsets = self._together(members[0], [each[1] for each in payloads], offsets_type, edges)
            if offsets.null_count:
                raise F3Error("the offsets of lists contain nulls")
            split = np.split(offsets.to_numpy(), np.cumsum(edges)[:-1])
            for place, part, each in zip(places, split, payloads, strict=True):
                parts[place], rest[place] = part, each[-1]
        return pa.concat_arrays(present) if present else pa.array([], pa.bool_()), parts, rest

    def decoded(self, payload: memoryview, stored: EncUnit, arrow_type: pa.DataType, rows: int) -> pa.Array:
        """Decode one payload into an array."""
        if rows == 0:
            return pa.array([], arrow_type)
        return _checked(self._contents.decoder(stored).decode(payload, arrow_type, rows), arrow_type, rows)

    def _run(self, arrow_type: pa.DataType, units: Sequence[Unit]) -> pa.Array:
        """Return the values of consecutive units that have the same decoder module."""
        payloads = [self._payload(unit, unit.start, unit.values) for unit in units]
        rows = [unit.rows for unit in units]
        try:
            return self._together(units[0], payloads, arrow_type, rows)
        except F3Error:
            if len(units) == 1:
                raise
            # Either one unit is invalid and raises its own error below, or the units are too long for one array.
            if self._is_too_long(arrow_type, units, payloads):
                raise TooLongError(f"{sum(rows)} rows do not fit into one array of {arrow_type}") from None
            raise

    def _together(
        self, unit: Unit, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]
    ) -> pa.Array:
        """Decode payloads that have the same decoder module into one array."""
        if len(payloads) == 1:
            return self.decoded(payloads[0], unit.values, arrow_type, rows[0])
        array = self._contents.decoder(unit.values).decode_into(payloads, arrow_type, rows)
        return _checked(array, arrow_type, sum(rows))

    def _is_too_long(self, arrow_type: pa.DataType, units: Sequence[Unit], payloads: Sequence[memoryview]) -> bool:
        """Return whether units of plausible sizes exceed the limit of an array. False if the sizes are implausible for
        the stored bytes, because a few forged bytes can claim any size."""
        shape = shape_of(arrow_type)
        if shape.kind != TEXT:
            values_bytes = sum(unit.rows for unit in units) * shape.width_bytes
            return native.MOST_ARRAY_BYTES < values_bytes <= _MOST_RATIO * sum(map(len, payloads))
        alone = sum(
            self.decoded(payload, unit.values, arrow_type, unit.rows).nbytes
            for unit, payload in zip(units, payloads, strict=True)
        )
        return alone > (_MOST_SHORT_BYTES if shape.width_bytes == 4 else native.MOST_ARRAY_BYTES)

    def _local(self, arrow_type: pa.DataType, unit: Unit) -> pa.Array:
        dictionary = unit.dictionary
        assert dictionary is not None  # The scope is local, so a unit has a dictionary.
        payload = self._payload(unit, unit.key[0], dictionary) if dictionary.rows else memoryview(b"")
        values = self.decoded(payload, dictionary, arrow_type, dictionary.rows)
        if unit.unmarked:
            self._check_pair(unit, values)
        return self._looked_up(arrow_type, values, [unit])

    def _check_pair(self, unit: Unit, values: pa.Array) -> None:
        """Check that a unit holds indices into `values`, the dictionary before it. So far only the row counts suggest
        that unit and dictionary belong together. Raises F3Error."""
        indices = self._run(index_type(len(values)), [unit])
        if values.null_count or not in_first_appearance_order(indices, len(values)):
            raise F3Error(wrong_pair(unit.start))

    def _looked_up(self, arrow_type: pa.DataType, values: pa.Array, units: Sequence[Unit]) -> pa.Array:
        if len(values) == 0:
            # If all values are null, their indices are ignored and may be arbitrary.
            return pa.nulls(sum(unit.rows for unit in units), arrow_type)
        indices = self._run(index_type(len(values)), units)
        try:
            return looked_up(values, indices)
        except pa.ArrowInvalid as error:
            # A few long strings that occur repeatedly can exceed 32-bit offsets.
            raise TooLongError(str(error)) from None

    def _dictionary(self, number: int, arrow_type: pa.DataType) -> pa.Array:
        """Return a shared dictionary. It is decoded on first use."""
        known = self._contents.known_dictionary(number, arrow_type)
        if known is None:
            parts = [
                _DictionaryValues(self._contents, held).array(arrow_type, stored.units)
                for stored, held in self._contents.dictionary_parts(number, arrow_type)
            ]
            known = pa.concat_arrays(parts) if parts else pa.array([], arrow_type)
            self._contents.keep_dictionary(number, arrow_type, known)
        return known

    def _stored(self, unit: Unit, start: int, stored: EncUnit) -> memoryview:
        # Memory holds the whole IOUnit (units written together) if it was read as a whole, else only the unit.
        base, data = self._held.get(key_of(unit.chunk)) or self._held[unit.key]
        begin = start - base
        return data[begin : begin + stored.size_bytes]

    def _payload(self, unit: Unit, start: int, stored: EncUnit) -> memoryview:
        return decompress(self._stored(unit, start, stored), stored.compression, f"EncUnit at {start}")


class _DictionaryValues(Values):
    """Values of a shared dictionary. The F3 authors' program marks units of shared dictionaries as compressed but
    stores them raw, so raw units are accepted too."""

    def _payload(self, unit: Unit, start: int, stored: EncUnit) -> memoryview:
        try:
            return super()._payload(unit, start, stored)
        except F3Error as error:
            # A blob states its number of rows and its size, and is never a zstd frame or an LZ4 block. So a raw unit
            # can be recognized with certainty.
            data = self._stored(unit, start, stored)
            if framing.is_blob(data, stored.rows):
                return data
            raise F3Error(not_unpacked(data, stored, str(error))) from None


def _checked(array: pa.Array, arrow_type: pa.DataType, rows: int) -> pa.Array:
    if array.type != arrow_type:
        raise F3Error(f"the decoder returned the type {array.type} instead of {arrow_type}")
    if len(array) != rows:
        raise F3Error(f"the decoder returned {len(array)} rows instead of {rows}")
    return array
