"""Dictionaries that a column or several columns share (specification 4.2 to 4.4 and 9.4).

This module chooses the width of indices, builds dictionaries, looks up values, finds columns that can share a
dictionary, and estimates whether a dictionary saves space. The functions take arrays. To learn the size of a payload
they call a function that the caller passes. Dictionaries that an encoding uses inside one unit are separate from these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.f3.errors import F3Error

_SAMPLED_UNITS = 4
_SAMPLED_VALUES = 16_384
_MOST_COMPARED = 64
_MOST_COMPARED_BYTES = 2**31 - 1
"""Maximum of 32-bit offsets. Comparing values puts all of them into one array, which has this limit."""
_SAMPLE_ENTRIES = 4096
_LEAST_COMMON = 1024
_LEAST_SIMILARITY = 0.99
_SCATTER = np.uint64(0x9E3779B97F4A7C15)
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
    """Return whether columns of a type can have dictionary scopes.

    Specification 4.4 lists the types. Booleans are excluded here, because a dictionary never makes them smaller.
    """
    return any(check(arrow_type) for check in _DICTIONARY_TYPES)


def index_type(entries: int) -> pa.DataType:
    """Return the type of indices into a dictionary with this number of entries."""
    if entries < 1 << 8:
        return pa.uint8()
    if entries < 1 << 16:
        return pa.uint16()
    return pa.uint32() if entries < 1 << 32 else pa.uint64()


@dataclass(frozen=True)
class Dictionary:
    """The distinct values of some arrays, in order of first appearance. `places` has one array of indices per input
    array.

    The indices are 32-bit, and null where the input is null.
    """

    values: pa.Array
    places: tuple[pa.Array, ...]

    def indices(self) -> list[pa.Array]:
        """Return the indices in the type in which they are stored."""
        width = index_type(len(self.values))
        return [each.cast(width) for each in self.places]


def build(arrays: Sequence[pa.Array]) -> Dictionary:
    """Return the dictionary of arrays of one type. Floats are compared by their bits, so every NaN is preserved."""
    # Arrow omits empty chunks. They are restored below.
    filled = [_as_bits(array) for array in arrays if len(array)]
    nothing = pa.array([], pa.int32())
    if not filled:
        return Dictionary(arrays[0].slice(0, 0), (nothing,) * len(arrays))
    encoded = pa.chunked_array(filled).dictionary_encode().unify_dictionaries()
    values = encoded.chunk(0).dictionary.view(arrays[0].type)
    places = iter(chunk.indices for chunk in encoded.chunks)
    return Dictionary(values, tuple(next(places) if len(array) else nothing for array in arrays))


def _as_bits(array: pa.Array) -> pa.Array:
    bits = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(array.type)
    return array if bits is None else array.view(bits)


def looked_up(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the values at unsigned indices, and null where the index is null.

    Arrow may hold any number in the slot of a null index. Raises F3Error for any other index out of range.
    """
    if len(values) == 0:
        raise F3Error("values are needed from an empty dictionary")
    highest = pc.max(indices).as_py()
    if highest is not None and highest >= len(values):
        raise F3Error(f"index {highest} is out of range of a dictionary of {len(values)} entries")
    return pc.take(values, indices, boundscheck=False)


def in_first_appearance_order(indices: pa.Array, entries: int) -> bool:
    """Return whether indices look like those that `build` makes for a dictionary with this number of entries.

    Then every index is at most one above the maximum of the indices before it, and each entry occurs. Other arrays of
    small numbers hardly ever have this property.
    """
    highest = np.maximum.accumulate(indices.drop_null().to_numpy().astype(np.int64))
    if len(highest) == 0:
        return entries == 0
    return bool(highest[-1] == entries - 1 and (np.diff(highest, prepend=-1) <= 1).all())


# --- whether a dictionary pays --------------------------------------------------------------------------------------


def worthwhile(units: Sequence[pa.Array], size_of: Callable[[pa.Array], int]) -> Dictionary | None:
    """Return a shared dictionary of a column if it makes the column smaller than separate units, else None.

    Building a dictionary of a million values takes longer than all other steps, so it is skipped if a sample shows that
    hardly any value repeats.
    """
    rows = sum(map(len, units))
    entries = _entries_expected(units, rows)
    # If values repeat more often, the encoded indices may be far smaller than their width suggests. Then only encoding
    # both can decide.
    if entries > rows / 2 and not _could_pay(entries, rows, sum(each.nbytes for each in units)):
        return None
    built = build(units)
    return built if pays(units, built, size_of) else None


def pays(units: Sequence[pa.Array], dictionary: Dictionary, size_of: Callable[[pa.Array], int]) -> bool:
    """Return whether a shared dictionary makes a column smaller than separate units.

    Both sizes are estimated from four units and four parts of the dictionary. For 16 units this takes a quarter of the
    time of encoding everything. Ties go to the separate units, as in the original.
    """
    sample = _spread(len(units), _SAMPLED_UNITS)
    alone = _scaled(size_of, [units[place] for place in sample], sum(map(len, units)))
    indices = dictionary.indices()
    by_index = _scaled(size_of, [indices[place] for place in sample], sum(map(len, units)))
    entries = len(dictionary.values)
    stretch = max(1, max(map(len, units)))
    stretches = [dictionary.values.slice(start, stretch) for start in range(0, entries, stretch)]
    shared = _scaled(size_of, [stretches[place] for place in _spread(len(stretches), _SAMPLED_UNITS)], entries)
    return by_index + shared < alone


def _could_pay(entries: float, rows: int, plain_bytes: float) -> bool:
    """Return whether one copy of each value and one index per row could be smaller than the plain values."""
    by_index = rows * math.log2(max(entries, 1)) / 8
    return by_index + entries * plain_bytes / max(rows, 1) < plain_bytes


def _entries_expected(units: Sequence[pa.Array], rows: int) -> float:
    """Estimate the number of distinct values from a sample. The estimate is more often too low than too high."""
    sample = pa.concat_arrays([unit.take(pa.array(places)) for unit, places in _sampled(units, rows)]).drop_null()
    drawn = len(sample)
    distinct = len(_as_bits(sample).unique())
    if drawn in (0, rows):
        return distinct
    if distinct == drawn:
        return rows
    # Find the number of equally frequent values for which a sample this large is expected to have this many distinct
    # values. If some values are rarer, the true number is higher. If each value occurs exactly twice, the found number
    # is twice the true one. The final formula corrects this.
    least, most = float(distinct), float(drawn) ** 2
    while most - least > 1:
        middle = (least + most) / 2
        if middle * -math.expm1(-drawn / middle) < distinct:
            least = middle
        else:
            most = middle
    return 1 / (1 / rows + 1 / most)


def _sampled(units: Sequence[pa.Array], rows: int) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """Yield sampled positions across all units. They are the same for the same number of rows."""
    if rows <= _SAMPLED_VALUES:
        places = np.arange(rows)
    else:
        places = np.unique(np.random.default_rng(rows).integers(0, rows, _SAMPLED_VALUES))
    start = 0
    for unit in units:
        yield unit, places[(start <= places) & (places < start + len(unit))] - start
        start += len(unit)


def _spread(count: int, wanted: int) -> list[int]:
    """Return evenly spread positions, including the first and the last."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, wanted))}) if count else []


def _scaled(size_of: Callable[[pa.Array], int], sample: Sequence[pa.Array], rows: int) -> float:
    sampled = sum(map(len, sample))
    return sum(map(size_of, sample)) * rows / sampled if sampled else 0.0


# --- sharing across columns ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared:
    """Dictionaries, and the parts that they consist of. A dictionary is one part, or a common part followed by its own
    part.
    """

    parts: tuple[pa.Array, ...]
    dictionaries: tuple[Dictionary, ...]
    made_of: tuple[tuple[int, ...], ...]


def share(dictionaries: Sequence[Dictionary]) -> Shared:
    """Store the entries that two dictionaries have in common once, if they are at least 1,024 or almost all entries.

    Each dictionary is merged with at most one other, starting with the most similar pairs. Merging reorders entries:
    the common ones come first, in the order of the second dictionary.
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
    """Return the pairs to merge. Similarity is estimated from samples: a hash of the value selects the same values in
    each dictionary.
    """
    by_type: dict[pa.DataType, list[int]] = {}
    for place, dictionary in enumerate(dictionaries):
        if len(dictionary.values):
            by_type.setdefault(dictionary.values.type, []).append(place)
    found: list[tuple[float, int, int]] = []
    for places in by_type.values():
        # The number of pairs grows with the square of the number of dictionaries, so only the largest dictionaries are
        # compared.
        compared = sorted(sorted(places, key=lambda place: -len(dictionaries[place].values))[:_MOST_COMPARED])
        samples = _samples([dictionaries[place].values for place in compared])
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


def _samples(values: Sequence[pa.Array]) -> list[np.ndarray]:
    if len(values) < 2 or sum(each.nbytes for each in values) > _MOST_COMPARED_BYTES:
        return [np.empty(0, np.uint64)] * len(values)
    # Number the values across all dictionaries, so that equal numbers mean equal values.
    numbers = [each.to_numpy().astype(np.uint64) for each in build(values).places]
    most = np.uint64(min(1.0, _SAMPLE_ENTRIES / max(map(len, numbers))) * (2**64 - 2**11))
    return [each[each * _SCATTER <= most] for each in numbers]


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
    return Dictionary(values, tuple(moved.take(each) for each in dictionary.places))
