"""Choose an encoding for values: estimate the size of each candidate from statistics and a sample, and build the
smallest.

Encodings that are slower to decode are only chosen if they are smaller by a factor. The result is a node, which stores
values with one encoding. Encoders call each other for the contents of nodes (lengths of runs, codes of a dictionary),
so a payload is a tree of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa

from libraries.f3.encodings import arithmetic
from libraries.f3.encodings.arithmetic import Numbers
from libraries.f3.encodings.memo import Memo
from libraries.f3.encodings.nodes import NODE_BYTES, Tag, node, u32, u64
from libraries.f3.errors import F3Error

_PACKED_BYTES = "packed bytes"
NAMES = frozenset(tag.name.lower() for tag in Tag) | {_PACKED_BYTES}
"""Names of encodings that the argument `allow` of `unit_codec.encode` may contain. Plain encoding is always allowed."""
FOR_CODECS = NAMES - {"symbols", _PACKED_BYTES}
"""Encodings to use before a codec such as zstd. These encodings leave the bytes of strings as they are, because the
codec compresses plain strings better."""

_SAMPLE_RUNS, _SAMPLE_RUN = 16, 64
_DEEPEST = 4
"""Maximum nesting of nodes that encoders produce. Decoders accept twice as many levels."""
_SLOWER = {"delta": 1.04, "runs": 1.05, "dictionary": 1.08, "patched": 1.05, "decimal": 1.04, "split": 1.04}
"""The estimated size of a candidate is multiplied by this factor, to account for slower decoding."""
_FEW_BYTES = 512
"""Up to this many bytes, numbers are only packed or stored as they are. Searching for a better encoding takes longer
than it saves."""
_SYMBOLS_SLOWER = 1.25
_SYMBOL_SAMPLE_RUNS, _SYMBOL_SAMPLE_RUN = 16, 512
_FEWEST_SYMBOL_BYTES = 1024
_MOST_STRING_BYTES = (1 << 31) - 1
_MOST_DISTINCT = 0.8
"""A dictionary is tried only if at most this share of the values is distinct."""
_SURE = 1.2
"""If the estimated saving of a dictionary and the size of its codes differ by less than this factor, strings are
encoded with and without a dictionary. The smaller result is kept."""
_MOST_DECIMAL = {8: 17, 4: 9}


@dataclass(frozen=True)
class Choice:
    """The encodings that may be used, and how many more levels of nodes are allowed."""

    allowed: frozenset[str] = NAMES
    left: int = _DEEPEST
    symbols: arithmetic.Symbols | None = None
    """A symbol table that was trained on more strings than the unit has. None: train one on the strings of the unit."""

    def allows(self, name: str) -> bool:
        """Return whether an encoding that contains other nodes may be used at this level."""
        return self.left > 0 and name in self.allowed

    def inside(self) -> Choice:
        """Return the choice for the nodes inside a node."""
        return replace(self, left=self.left - 1)

    def of_codes(self) -> Choice:
        """Return the choice for the codes of a dictionary. It excludes dictionaries, which would gain nothing there."""
        return replace(self, allowed=self.allowed - {"dictionary"}, left=self.left - 1)


@dataclass(frozen=True)
class _Candidate:
    size_bytes: float
    make: Callable[[], bytes]


def plain(values: Numbers) -> bytes:
    """Return a node of the unencoded values."""
    return node(Tag.PLAIN, values.tobytes())


@lru_cache(maxsize=64)
def _sampled(count: int, runs: int, run: int) -> Numbers | None:
    """Return the positions of `runs` evenly spread runs of `run` values each. Return None if they would cover at least
    half of the values."""
    if count <= 2 * runs * run:
        return None
    starts = np.linspace(0, count - run, runs).astype(np.int64)
    return (starts[:, None] + np.arange(run)).ravel()


def _sample(values: Numbers) -> Numbers:
    positions = _sampled(len(values), _SAMPLE_RUNS, _SAMPLE_RUN)
    return values if positions is None else values[positions]


def _bits(most: int) -> int:
    return int(most).bit_length()


def encode_integers(values: Numbers, choice: Choice, *, signed: bool = True) -> bytes:
    """Encode integers of 1, 2, 4 or 8 bytes, given as unsigned.

    `signed` states whether the values represent signed integers. `signed` affects only the size: values are preserved
    either way.
    """
    count, width = len(values), values.itemsize
    if count == 0:
        return plain(values)
    found = arithmetic.statistics(values)
    least, most = found.least, found.most
    if not signed and least < 0:
        least, most = int(values.min()), int(values.max())
    if least == most and "constant" in choice.allowed:
        return node(Tag.CONSTANT, values[:1].tobytes())
    candidates = [_Candidate(NODE_BYTES + count * width, lambda: plain(values))]
    bits = _bits(most - least)
    if "packed" in choice.allowed and bits < 8 * width:
        packed_bytes = NODE_BYTES + 8 + count * bits / 8
        candidates.append(_Candidate(packed_bytes, lambda: _packed(values, least, bits)))
    if count * width <= _FEW_BYTES:
        return _smallest(candidates)
    step_bits = _bits(found.most_step - found.least_step)
    if choice.allows("delta") and "packed" in choice.allowed and count > 1 and step_bits < bits:
        size = (2 * NODE_BYTES + 16 + count * step_bits / 8) * _SLOWER["delta"]
        candidates.append(_Candidate(size, lambda: _delta(values, choice)))
    candidates += _repetitions(values, found.runs, bits, choice)
    if choice.allows("patched") and "packed" in choice.allowed and count > 64:
        candidates += _outliers(values, signed, choice)
    return _smallest(candidates)


def _smallest(candidates: list[_Candidate]) -> bytes:
    """Build the candidate with the smallest estimated size. If the result is larger than the estimate of the next
    candidate, build that too, and return the smaller result."""
    ordered = sorted(candidates, key=lambda candidate: candidate.size_bytes)
    made = ordered[0].make()
    if len(ordered) > 1 and len(made) > ordered[1].size_bytes:
        made = min(made, ordered[1].make(), key=len)
    return made


def _packed(values: Numbers, least: int, bits: int) -> bytes:
    return node(Tag.PACKED, u64(least) + arithmetic.packed(values, least, bits), bits)


def _delta(values: Numbers, choice: Choice) -> bytes:
    steps = np.empty_like(values)
    np.subtract(values[1:], values[:-1], out=steps[1:])
    steps[0] = steps[1]
    return node(Tag.DELTA, u64(int(values[0])) + encode_integers(steps, choice.inside()))


def _repetitions(values: Numbers, runs: int, bits: int, choice: Choice) -> list[_Candidate]:
    """Return candidates that store runs or a dictionary, if values repeat. Values may have any width, and may be
    floats."""
    candidates = []
    count, width = len(values), values.itemsize
    if choice.allows("runs") and runs <= count // 2:
        length_bits = _bits(2 * count // runs) + 1
        size = (4 + 3 * NODE_BYTES + runs * (length_bits + bits) / 8) * _SLOWER["runs"]
        candidates.append(_Candidate(size, lambda: _runs(values, choice)))
    if choice.allows("dictionary") and bits > 8 and count > 16:
        distinct = arithmetic.repetitions(values).distinct
        if distinct <= _MOST_DISTINCT * count:
            code_bits = _bits(distinct)
            # The codes have as many runs as the values, and are stored as runs if that is smaller.
            codes_bytes = min(count * code_bits, runs * (code_bits + _bits(2 * count // runs) + 1)) / 8
            size = (4 + 3 * NODE_BYTES + codes_bytes + distinct * width) * _SLOWER["dictionary"]
            candidates.append(_Candidate(size, lambda: _dictionary(values, choice)))
    return candidates


def _runs(values: Numbers, choice: Choice) -> bytes:
    starts = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))
    lengths = np.diff(starts, append=len(values)).astype(np.uint32)
    inside = choice.inside()
    return node(Tag.RUNS, u32(len(starts)) + encode_integers(lengths, inside) + _inner(values[starts], inside))


def _inner(values: Numbers, choice: Choice) -> bytes:
    """Encode values of the same width as the node that contains them."""
    return encode_integers(values, choice) if values.dtype.kind == "u" else encode_wide(values, choice)


def _dictionary(values: Numbers, choice: Choice) -> bytes:
    entries, codes = _distinct(values)
    inside = choice.inside()
    stored = _narrowed(codes, len(entries))
    codes_node = encode_integers(stored, choice.of_codes(), signed=False)
    return node(Tag.DICTIONARY, u32(len(entries)) + codes_node + _inner(entries, inside), stored.itemsize)


def _distinct(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return the distinct values, and for each row the index of its value among them."""
    if values.dtype.kind == "u" and values.itemsize == 2:
        # A table of all 65,536 values is faster than a hash table.
        places = np.zeros(1 << 16, np.uint16)
        places[values] = 1
        entries = np.flatnonzero(places).astype(values.dtype)
        places[entries] = np.arange(len(entries), dtype=np.uint16)
        return entries, places[values]
    memo = Memo(values.itemsize, len(values))
    codes = memo.add(values)
    assert codes is not None  # There is room for all values.
    return memo.values()[0].view(values.dtype), codes


def _narrowed(codes: Numbers, entries: int) -> Numbers:
    return codes.astype(np.uint8 if entries <= 1 << 8 else np.uint16 if entries <= 1 << 16 else np.uint32)


def _outliers(values: Numbers, signed: bool, choice: Choice) -> list[_Candidate]:
    """Return candidates that pack a narrow range and store outliers separately. The range is chosen from a sample."""
    sample, count = _sample(values), len(values)
    found = arithmetic.usual_range(sample, count, signed=signed)
    cost, low, high = found.cost_bytes, found.low, found.high
    if found.times > len(sample) / 2:
        usual_cost = (count - count * found.times / len(sample)) * (values.itemsize + 2)
        if usual_cost < cost:
            cost, low, high = usual_cost, found.usual, found.usual
    estimate = (4 + 4 * NODE_BYTES + cost) * _SLOWER["patched"]
    return [_Candidate(estimate, lambda: _patched_range(values, low, high, signed, choice))]


def _patched_range(values: Numbers, low: int, high: int, signed: bool, choice: Choice) -> bytes:
    meant = values.view(f"i{values.itemsize}") if signed else values
    positions = np.flatnonzero((meant < low) | (meant > high)).astype(np.uint32)
    if len(positions) == 0:
        return _packed(values, low, _bits(high - low))
    base = values.copy()
    base[positions] = np.array([low % (1 << 8 * values.itemsize)], values.dtype)
    # Do not search for a smaller encoding of these values, because the range was chosen to pack well.
    bits = _bits(high - low)
    stored = _packed(base, low, bits) if bits else node(Tag.CONSTANT, base[:1].tobytes())
    return patched(stored, positions, values, choice)


def patched(base: bytes, positions: Numbers, values: Numbers, choice: Choice) -> bytes:
    """Return a node that stores all rows in the node `base`, and separately the true values at some ascending
    positions."""
    inside = choice.inside()
    body = u32(len(positions)) + base + encode_integers(positions, inside) + _inner(values[positions], inside)
    return node(Tag.PATCHED, body)


def encode_floats(values: Numbers, choice: Choice) -> bytes:
    """Encode floats of 4 or 8 bytes. Every bit is preserved, also in NaNs and negative zeros."""
    bits = np.ascontiguousarray(values).view(f"u{values.itemsize}")
    count, width = len(bits), bits.itemsize
    if count == 0:
        return plain(bits)
    statistics = arithmetic.statistics(bits)
    if statistics.least == statistics.most and "constant" in choice.allowed:
        return node(Tag.CONSTANT, bits[:1].tobytes())
    candidates = [_Candidate(NODE_BYTES + count * width, lambda: plain(bits))]
    if count * width <= _FEW_BYTES:
        return plain(bits)
    candidates += _repetitions(bits, statistics.runs, 8 * width, choice)
    sample = _sample(bits)
    if choice.allows("decimal"):
        candidates += _decimals(values, sample.view(values.dtype), choice)
    if choice.allows("split"):
        candidates += _splits(bits, sample, choice)
    if choice.allows("patched") and count > 64:
        found = arithmetic.usual_range(sample, count, signed=False)
        if found.times > len(sample) / 2:
            usual = np.array([found.usual], bits.dtype)
            size = (4 + 4 * NODE_BYTES + count * (1 - found.times / len(sample)) * (width + 2)) * _SLOWER["patched"]
            candidates.append(_Candidate(size, lambda: _mostly(bits, usual, choice)))
    return _smallest(candidates)


def _mostly(values: Numbers, usual: Numbers, choice: Choice) -> bytes:
    positions = np.flatnonzero(values != usual[0]).astype(np.uint32)
    return patched(node(Tag.CONSTANT, usual.tobytes()), positions, values, choice)


def _decimals(values: Numbers, sample: Numbers, choice: Choice) -> list[_Candidate]:
    width = values.itemsize
    exponent = arithmetic.decimal_exponent(sample, _MOST_DECIMAL[width], len(sample) // 10)
    if exponent is None:
        return []
    integers, misses = arithmetic.decimals(sample, exponent)
    found = arithmetic.statistics(integers)
    bits = min(_bits(found.most - found.least), _bits(found.most_step - found.least_step) + 2)
    size = 5 * NODE_BYTES + 16 + len(values) * (bits / 8 + len(misses) / len(sample) * (width + 2))
    return [_Candidate(size * _SLOWER["decimal"], partial(_decimal, values, exponent, choice))]


def _decimal(values: Numbers, exponent: int, choice: Choice) -> bytes:
    integers, misses = arithmetic.decimals(values, exponent)
    unsigned = integers.view(f"u{values.itemsize}")
    stored = node(Tag.DECIMAL, encode_integers(unsigned, choice.inside()), exponent)
    if len(misses) == 0:
        return stored
    return patched(stored, misses, values.view(unsigned.dtype), choice)


def _splits(bits: Numbers, sample: Numbers, choice: Choice) -> list[_Candidate]:
    """Return candidates that split floats into high and low bits.

    The high bits (sign, exponent) often have few distinct values, even if the low bits are noise.
    """
    width_bits = 8 * bits.itemsize
    best: tuple[float, int] | None = None
    below_exponent = {32: 23, 64: 52}[width_bits]
    ascending = np.sort(sample)
    for low_bits in (below_exponent, *range(width_bits - 16, width_bits - 6)):
        high = ascending >> sample.dtype.type(low_bits)
        trimmed = _bits(int(high[-1]) - int(high[len(high) // 32])) + 1
        distinct = _bits(int(np.count_nonzero(high[1:] != high[:-1]))) + 0.2
        high_bits = min(float(_bits(int(high[-1]) - int(high[0]))), trimmed, distinct)
        # The split right below the exponent comes first, because it decodes fastest. Another split must save more than
        # one bit per value.
        if best is None or low_bits + high_bits < best[0] - 1:
            best = (low_bits + high_bits, low_bits)
    assert best is not None
    stored_bits, cut = best
    size = (4 * NODE_BYTES + 8 + len(bits) * stored_bits / 8) * _SLOWER["split"]
    return [_Candidate(size, lambda: _split(bits, cut, choice))]


def _split(bits: Numbers, low_bits: int, choice: Choice) -> bytes:
    inside = choice.inside()
    low = bits & bits.dtype.type((1 << low_bits) - 1)
    high = (bits >> bits.dtype.type(low_bits)).astype(np.uint16)
    body = encode_integers(low, inside, signed=False) + encode_integers(high, inside, signed=False)
    return node(Tag.SPLIT, body, low_bits)


def encode_wide(values: Numbers, choice: Choice) -> bytes:
    """Encode values of 16 or 32 bytes (decimals and intervals), given as arrays of bytes."""
    count = len(values)
    if count == 0:
        return plain(values)
    words = values.view("<u8").reshape(count, -1)
    low = np.ascontiguousarray(words[:, 0])
    extension = (low.view(np.int64) >> 63).view(np.uint64)
    changes = int(np.count_nonzero((words[1:] != words[:-1]).any(axis=1)))
    if changes == 0 and "constant" in choice.allowed:
        return node(Tag.CONSTANT, values[:1].tobytes())
    candidates = [_Candidate(NODE_BYTES + count * values.itemsize, lambda: plain(values))]
    if choice.allows("widened") and bool((words[:, 1:] == extension[:, None]).all()):
        narrow = encode_integers(low, choice.inside())
        candidates.append(_Candidate(NODE_BYTES + len(narrow), lambda: node(Tag.WIDENED, narrow, 8)))
    if len(candidates) == 1:
        candidates += _repetitions(values, changes + 1, 8 * values.itemsize, choice)
    return _smallest(candidates)


def encode_bits(bits: Numbers, choice: Choice) -> bytes:
    """Encode booleans, given as one byte each (0 or 1), as a bitmap or a smaller node."""
    count = len(bits)
    ones = int(np.count_nonzero(bits))
    if ones in (0, count) and "constant" in choice.allowed:
        return node(Tag.CONSTANT, b"", int(ones > 0))
    candidates = [
        _Candidate(
            NODE_BYTES + (count + 7) // 8, lambda: node(Tag.PLAIN, np.packbits(bits, bitorder="little").tobytes())
        )
    ]
    few = min(ones, count - ones)
    if choice.allows("patched") and few < count / 16:
        size = (4 + 2 * NODE_BYTES + 8 + few * 2) * _SLOWER["patched"]
        candidates.append(_Candidate(size, lambda: _few_bits(bits, few == ones, choice)))
    if choice.allows("runs"):
        changes = int(np.count_nonzero(bits[1:] != bits[:-1]))
        if changes < count / 16:
            size = (4 + 2 * NODE_BYTES + 8 + changes * _bits(2 * count // (changes + 1)) / 8) * _SLOWER["runs"]
            candidates.append(_Candidate(size, lambda: _bit_runs(bits, choice)))
    return _smallest(candidates)


def _few_bits(bits: Numbers, ones_are_few: bool, choice: Choice) -> bytes:
    positions = np.flatnonzero(bits if ones_are_few else bits == 0).astype(np.uint32)
    return node(Tag.PATCHED, u32(len(positions)) + encode_integers(positions, choice.inside()), int(not ones_are_few))


def _bit_runs(bits: Numbers, choice: Choice) -> bytes:
    starts = np.concatenate(([0], np.flatnonzero(bits[1:] != bits[:-1]) + 1))
    lengths = np.diff(starts, append=len(bits)).astype(np.uint32)
    return node(Tag.RUNS, u32(len(starts)) + encode_integers(lengths, choice.inside()), int(bits[0]))


@dataclass(frozen=True)
class Strings:
    """Concatenated strings: their bytes, and the length of each."""

    data: Numbers
    lengths: Numbers


def strings_of(array: pa.Array) -> Strings:
    """Return the strings of an Arrow array without nulls."""
    _, offsets_buffer, data_buffer = array.buffers()
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.dtype("<i8" if large else "<i4")
    if len(array) == 0 or offsets_buffer is None:
        return Strings(np.empty(0, np.uint8), np.empty(0, np.uint32))
    offsets = np.frombuffer(offsets_buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer, np.uint8, end - first, first) if end > first else np.empty(0, np.uint8)
    lengths = np.diff(offsets)
    if len(data) > _MOST_STRING_BYTES and int(lengths.max()) > _MOST_STRING_BYTES:
        raise F3Error(f"a string has {int(lengths.max())} bytes; an EncUnit holds at most {_MOST_STRING_BYTES}")
    return Strings(data, lengths.astype(np.uint32))


def encode_strings(array: pa.Array, choice: Choice) -> bytes:
    """Encode strings or binaries of an Arrow array without nulls."""
    count = len(array)
    strings = strings_of(array)
    if choice.allows("dictionary") and count > 1:
        distinct = arithmetic.repetitions(strings.data, strings.lengths).distinct
        if distinct <= _MOST_DISTINCT * count or distinct == 1:
            return _string_dictionary(strings, choice)
    return _plain_strings(strings, choice)


def _plain_strings(strings: Strings, choice: Choice) -> bytes:
    inside = choice.inside()
    lengths = encode_integers(strings.lengths, inside, signed=False)
    return node(Tag.PLAIN, lengths + encode_bytes(strings.data, inside))


def _string_dictionary(strings: Strings, choice: Choice) -> bytes:
    """Encode strings with a dictionary, or without one if that is smaller."""
    count = len(strings.lengths)
    memo = Memo(0, count)
    numbers = memo.add(strings.data, strings.lengths)
    assert numbers is not None  # There is room for all strings.
    entries, distinct = Strings(*memo.values()), memo.entries
    if distinct == 1 and "constant" in choice.allowed:
        return node(Tag.CONSTANT, entries.data.tobytes())
    codes = _narrowed(numbers, distinct)
    stored = encode_integers(codes, choice.of_codes(), signed=False)
    held = _plain_strings(entries, choice.inside())
    made = node(Tag.DICTIONARY, u32(distinct) + u32(len(entries.data)) + stored + held, codes.itemsize)
    # Bytes of the repeated strings without a dictionary, if they pack as well as the distinct strings.
    repeated_bytes = len(held) * (len(strings.data) + count) / (len(entries.data) + distinct) - len(held)
    if repeated_bytes > _SURE * len(stored):
        return made
    alone = _plain_strings(strings, choice)
    return alone if repeated_bytes * _SURE < len(stored) else min(made, alone, key=len)


def encode_bytes(data: Numbers, choice: Choice) -> bytes:
    """Encode the bytes of strings: as they are, packed, or as codes for symbols (frequent strings of several bytes)."""
    count = len(data)
    if count == 0:
        return plain(data)
    candidates = [_Candidate(NODE_BYTES + count, lambda: plain(data))]
    least, most = int(data.min()), int(data.max())
    bits = _bits(most - least)
    if least == most and "constant" in choice.allowed:
        return node(Tag.CONSTANT, data[:1].tobytes())
    if _PACKED_BYTES in choice.allowed and bits < 8:
        candidates.append(_Candidate(NODE_BYTES + 8 + count * bits / 8, lambda: _packed(data, least, bits)))
    if "symbols" in choice.allowed and count >= _FEWEST_SYMBOL_BYTES:
        sample = _sampled_text(data)
        symbols = choice.symbols or arithmetic.trained(sample)
        if symbols is not None:
            ratio = len(symbols.codes(sample)) / len(sample)
            size = (NODE_BYTES + 9 * symbols.count + count * ratio) * _SYMBOLS_SLOWER
            candidates.append(_Candidate(size, lambda: _symbols(data, symbols)))
    return _smallest(candidates)


def symbols_of(array: pa.Array) -> arithmetic.Symbols | None:
    """Train a symbol table on strings, to encode parts of these strings. Return None for few bytes, or if the native
    library is not built."""
    data = strings_of(array.drop_null() if array.null_count else array).data
    return arithmetic.trained(_sampled_text(data)) if len(data) >= _FEWEST_SYMBOL_BYTES else None


def _sampled_text(data: Numbers) -> Numbers:
    positions = _sampled(len(data), _SYMBOL_SAMPLE_RUNS, _SYMBOL_SAMPLE_RUN)
    return np.ascontiguousarray(data if positions is None else data[positions])


def _symbols(data: Numbers, symbols: arithmetic.Symbols) -> bytes:
    return node(Tag.SYMBOLS, symbols.table() + symbols.codes(data), symbols.count)
