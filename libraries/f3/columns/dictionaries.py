"""Dictionaries that several units of a column, or several columns, share (specification 4.2 to 4.4 and 9.4).

This module chooses the width of indices, builds dictionaries, looks up values, finds columns that can share a
dictionary, and estimates whether a dictionary saves space. The functions take arrays. To learn how many bytes an array
takes when it is stored, they call a function that the caller passes. Dictionaries that an encoding uses inside one unit
(a part of a column that is decoded alone) are separate from these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.f3.columns.memory_layout import TEXT, shape_of
from libraries.f3.encodings import arithmetic
from libraries.f3.encodings.encoders import strings_of
from libraries.f3.encodings.memo import Memo
from libraries.f3.errors import F3Error

_LEAST_ROWS = 4096
"""A unit needs at least this many rows to show whether values repeat."""
_MOST_DISTINCT = 0.79
"""A shared dictionary is tried if at most this share of a unit's values is distinct."""
_LEAST_REPEATED = 0.1
"""At least this share of the distinct values of later units must also occur in earlier units of the scope (the rows
that share a dictionary). Otherwise the column gets no shared dictionary."""
_LEAST_SAVED = 0.04
"""A shared dictionary is tried if a unit's distinct values take more than this share of the bytes of the indices."""
_MOST_COMPARED = 64
_MOST_BYTES = 2**31 - 1
"""Maximum bytes of the distinct values of one dictionary, because the offsets of the values have 32 bits."""
_SAMPLE_ENTRIES = 4096
_LEAST_COMMON = 1024
_LEAST_SIMILARITY = 0.99
_DICTIONARY_TYPES = (
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_date32,
    pa.types.is_date64,
)


def has_dictionaries(arrow_type: pa.DataType) -> bool:
    """Return whether columns of a type can have local and shared dictionaries.

    Specification 4.4 lists the types. Booleans are excluded here, because a dictionary never makes them smaller.
    """
    return any(check(arrow_type) for check in _DICTIONARY_TYPES)


def index_type(entries: int) -> pa.DataType:
    """Return the unsigned type of indices into a dictionary with this number of entries."""
    if entries < 1 << 8:
        return pa.uint8()
    if entries < 1 << 16:
        return pa.uint16()
    return pa.uint32() if entries < 1 << 32 else pa.uint64()


@dataclass(frozen=True)
class Dictionary:
    """The distinct values of some arrays, in order of first appearance.

    `places` has one array of indices for each of these arrays. The indices are 32-bit, and null where the array is
    null. `hashes` has a 32-bit hash of each distinct value; equal values of one type have equal hashes.
    """

    values: pa.Array
    places: tuple[pa.Array, ...]
    hashes: np.ndarray

    @cached_property
    def indices(self) -> tuple[pa.Array, ...]:
        """The indices, in the type that is stored in the file."""
        width = index_type(len(self.values))
        return tuple(each.cast(width) for each in self.places)


def build(arrays: Sequence[pa.Array]) -> Dictionary:
    """Return the dictionary of arrays of one type. Floats are compared by their bits, so every NaN is preserved. Raises
    F3Error if the distinct values take too many bytes."""
    growing = Growing(arrays[0].type, sum(map(len, arrays)), _MOST_BYTES)
    for array in arrays:
        if not growing.add(array):
            rows = sum(map(len, arrays))
            raise F3Error(f"the distinct values of {rows} rows exceed {_MOST_BYTES} bytes, the limit of a dictionary")
    return growing.dictionary()


def _as_bits(array: pa.Array) -> pa.Array:
    bits = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(array.type)
    return array if bits is None else array.view(bits)


def looked_up(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the values at unsigned indices, and null where the index is null.

    Arrow may hold any number in the slot of a null index, so such numbers are not checked. Raises F3Error if another
    index is out of range, or if there are no values.
    """
    if len(values) == 0:
        raise F3Error("values cannot be looked up in an empty dictionary")
    highest = pc.max(indices).as_py()
    if highest is not None and highest >= len(values):
        raise F3Error(f"index {highest} is out of range of a dictionary of {len(values)} entries")
    return pc.take(values, indices, boundscheck=False)


def in_first_appearance_order(indices: pa.Array, entries: int) -> bool:
    """Return whether indices look as if `build` had made them for a dictionary with this number of entries.

    `build` numbers values by first appearance. So each index is at most one above the maximum of the indices before it,
    and each entry occurs. Other arrays of small numbers hardly ever have this property.
    """
    highest = np.maximum.accumulate(indices.drop_null().to_numpy().astype(np.int64))
    if len(highest) == 0:
        return entries == 0
    return bool(highest[-1] == entries - 1 and (np.diff(highest, prepend=-1) <= 1).all())


# --- whether a dictionary pays --------------------------------------------------------------------------------------


class Growing:
    """A dictionary that grows while the arrays of a scope (the rows that share it) arrive. Only the indices and the
    distinct values of the arrays are kept."""

    def __init__(self, arrow_type: pa.DataType, most_entries: int, most_bytes: int) -> None:
        self._type, self._most_entries = arrow_type, most_entries
        shape = shape_of(arrow_type)
        self._memo = Memo(0 if shape.kind == TEXT else shape.width_bytes, most_entries, most_bytes)
        self._places: list[pa.Array] = []
        # Number of distinct values in all arrays but the first, and how many of these an earlier array has.
        self._again = self._repeated = 0

    @property
    def is_useless(self) -> bool:
        """Whether a shared dictionary will not pay. This is so if hardly any value of a later array occurs in an
        earlier one, or if further arrays would exceed the limit of entries.

        `rows` draws from N equally likely values are expected to give N (1 - exp(-rows / N)) distinct values. More
        distinct values than this with N = `limit` mean that further rows would exceed the limit. If values are not
        equally likely, even more new values follow.
        """
        if self._repeated < _LEAST_REPEATED * self._again:
            return True
        entries, limit = self._memo.entries, self._most_entries
        rows = sum(len(each) - each.null_count for each in self._places)
        return bool(entries > -limit * math.expm1(-rows / limit))

    def add(self, array: pa.Array) -> bool:
        """Add the values of an array. Return False if the dictionary would exceed a limit. The dictionary then has
        entries that no index refers to, and nothing more can be added."""
        present = array.drop_null() if array.null_count else array
        known = self._memo.entries
        numbers = self._memo.add(*_numbers_of(present))
        if numbers is None:
            return False
        if self._places:
            occurring = np.bincount(numbers, minlength=self._memo.entries) > 0
            self._repeated += int(np.count_nonzero(occurring[:known]))
            self._again += int(np.count_nonzero(occurring))
        if array.null_count:
            places = np.zeros(len(array), np.uint32)
            places[array.is_valid().to_numpy(zero_copy_only=False)] = numbers
            self._places.append(pa.array(places, mask=array.is_null().to_numpy(zero_copy_only=False)))
        else:
            self._places.append(pa.array(numbers))
        return True

    def dictionary(self) -> Dictionary:
        """Return the dictionary of the arrays added so far."""
        data, lengths = self._memo.values()
        values = pa.py_buffer(data)
        if shape_of(self._type).kind == TEXT:
            wide = np.int64 if pa.types.is_large_string(self._type) else np.int32
            offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(wide)
            array = pa.Array.from_buffers(self._type, len(lengths), [None, pa.py_buffer(offsets), values])
        else:
            array = pa.Array.from_buffers(self._type, len(lengths), [None, values])
        return Dictionary(array, tuple(self._places), self._memo.hashes())


def may_pay(array: pa.Array) -> bool:
    """Return whether one dictionary for several units could be smaller than a dictionary, or runs, in each unit.
    `array` holds the values of one unit.

    The answer is False if values hardly repeat, or if the distinct values take next to nothing compared with the
    indices. The size of the indices is estimated with and without runs, and the smaller estimate counts.
    """
    present = array.drop_null() if array.null_count else array
    if len(present) < _LEAST_ROWS:
        return False
    values, lengths = _numbers_of(present)
    found = arithmetic.repetitions(values, lengths)
    if found.distinct > _MOST_DISTINCT * len(present):
        return False
    values_bytes = present.nbytes / len(present) * found.distinct
    code_bits = math.log2(found.distinct + 1)
    run_bits = code_bits + math.log2(2 * len(present) / found.runs)
    return bool(values_bytes > _LEAST_SAVED * min(len(present) * code_bits, found.runs * run_bits) / 8)


def repeats_much(array: pa.Array, most_bytes: int) -> bool:
    """Return whether the distinct strings of an array take at most `most_bytes` together. The answer is an estimate,
    and False for other types."""
    if shape_of(array.type).kind != TEXT or array.null_count == len(array):
        return False
    present = array.drop_null() if array.null_count else array
    found = arithmetic.repetitions(*_numbers_of(present))
    return bool(found.distinct * present.nbytes <= most_bytes * len(present))


def pays(
    dictionary: Dictionary,
    size_of: Callable[[pa.Array], int],
    size_of_dictionary: Callable[[pa.Array], int] | None = None,
) -> bool:
    """Return whether a shared dictionary makes a column smaller than separate units. False if there are fewer than two
    arrays.

    The first array decides: the size of this array is compared with the size of its indices plus a part of the
    dictionary's size. This part is in proportion to the rows of the array. If both are equal, the result is False, as
    in the F3 authors' program. `size_of` returns the stored bytes of an array. `size_of_dictionary`, if given, does the
    same for indices and dictionary, and may keep what it encoded, because these arrays may be written.
    """
    if len(dictionary.places) < 2:
        return False
    indices = dictionary.indices[0]
    alone = size_of(looked_up(dictionary.values, indices))
    parts = sum(map(len, dictionary.places)) / len(indices)
    size_of = size_of_dictionary or size_of
    return size_of(indices) + size_of(dictionary.values) / parts < alone


def _numbers_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values of an array without nulls as unsigned integers, and None; for strings, return all their bytes
    and the length of each string."""
    shape = shape_of(array.type)
    if shape.kind == TEXT:
        strings = strings_of(array)
        return strings.data, strings.lengths
    buffer = array.buffers()[1]
    dtype = np.dtype(f"<u{shape.width_bytes}")
    if buffer is None:
        return np.empty(0, dtype), None
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize), None


# --- sharing across columns ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared:
    """Dictionaries, and the parts that are stored for them.

    A dictionary consists of one part, or of a part that is common to two dictionaries followed by a part for this
    dictionary alone. `made_of` has, for each dictionary, the positions of its parts in `parts`.
    """

    parts: tuple[pa.Array, ...]
    dictionaries: tuple[Dictionary, ...]
    made_of: tuple[tuple[int, ...], ...]


def share(dictionaries: Sequence[Dictionary]) -> Shared:
    """Divide dictionaries into parts, so that entries that two dictionaries have in common are stored once.

    Two dictionaries are merged if at least 1,024 of their entries, or almost all, are common. Each dictionary is merged
    with at most one other, starting with the most similar pairs. Merging reorders entries: common entries come first,
    in the order of the second dictionary.
    """
    done: list[Dictionary] = list(dictionaries)
    parts: list[pa.Array] = []
    made_of: list[tuple[int, ...]] = [()] * len(done)
    for first, second in _pairs(dictionaries):
        common = _common(done[first].values, done[second].values)
        if common is None:
            continue
        shared = len(parts)
        parts.append(common)
        for each in (first, second):
            own = done[each].values.filter(pc.invert(_held(done[each].values, common)))
            done[each] = _reordered(done[each], pa.concat_arrays([common, own]))
            made_of[each] = (shared,) if len(own) == 0 else (shared, len(parts))
            parts.extend([own] if len(own) else [])
    for place, ids in enumerate(made_of):
        if not ids:
            made_of[place] = (len(parts),)
            parts.append(done[place].values)
    return Shared(tuple(parts), tuple(done), tuple(made_of))


def _pairs(dictionaries: Sequence[Dictionary]) -> list[tuple[int, int]]:
    """Return the pairs of dictionaries to merge. Similarity is estimated from samples. The hash of a value decides
    whether the value is sampled, so that all dictionaries sample the same values."""
    by_type: dict[pa.DataType, list[int]] = {}
    for place, dictionary in enumerate(dictionaries):
        if len(dictionary.values):
            by_type.setdefault(dictionary.values.type, []).append(place)
    found: list[tuple[float, int, int]] = []
    for places in by_type.values():
        # The number of pairs grows with the square of the number of dictionaries, so only the largest dictionaries are
        # compared.
        compared = sorted(sorted(places, key=lambda place: -len(dictionaries[place].values))[:_MOST_COMPARED])
        largest = max(len(dictionaries[place].values) for place in compared)
        most = min(1.0, _SAMPLE_ENTRIES / largest) * 2**32
        samples = [np.unique(hashes[hashes < most]) for hashes in (dictionaries[place].hashes for place in compared)]
        for index, first in enumerate(compared):
            for other in range(index + 1, len(compared)):
                similarity = _similarity(samples[index], samples[other])
                if similarity >= 0.01:
                    found.append((-similarity, first, compared[other]))
    taken: set[int] = set()
    pairs = []
    for _, first, second in sorted(found):
        if not {first, second} & taken:
            taken |= {first, second}
            pairs.append((first, second))
    return pairs


def _similarity(first: np.ndarray, second: np.ndarray) -> float:
    """Return the Jaccard similarity: the number of common entries divided by the number of entries of the union."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    either = len(first) + len(second) - both
    return both / either if either else 0.0


def _common(first: pa.Array, second: pa.Array) -> pa.Array | None:
    common = second.filter(_held(second, first))
    either = len(first) + len(second) - len(common)
    worth = len(common) >= _LEAST_COMMON or (len(common) and len(common) / either >= _LEAST_SIMILARITY)
    return common if worth else None


def _held(values: pa.Array, among: pa.Array) -> pa.Array:
    return pc.is_in(_as_bits(values), _as_bits(among))


def _reordered(dictionary: Dictionary, values: pa.Array) -> Dictionary:
    moved = pc.index_in(_as_bits(dictionary.values), _as_bits(values))
    hashes = np.empty_like(dictionary.hashes)
    hashes[moved.to_numpy()] = dictionary.hashes
    return Dictionary(values, tuple(moved.take(each) for each in dictionary.places), hashes)
