"""A blocked Bloom filter (blocks of 512 bits) of a component's keys, which is queried for many keys at once.

The filter replaces the key index of the paper (section 4.6). An upsert queries the filter before it looks for an older
version of a document. A key that is present always passes the filter.
"""

from __future__ import annotations

import struct

import numpy as np
import xxhash

from libraries.document_store.errors import CorruptError

BITS_FOR_KEY = 10
PROBES = 7
"""Number of bits that are set for each key. With 10 bits of memory per key, this number is the best: about 0.8 % of
absent keys pass a plain Bloom filter, and about 1.2 % pass this blocked one."""

WORDS_IN_BLOCK = 8
_HEADER = struct.Struct("<4sQ")
_MAGIC = b"DSKF"
_MOST_BLOCKS = 1 << 32

_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = np.uint64(0x9E3779B97F4A7C15)


def hash_keys(keys: np.ndarray) -> np.ndarray:
    """Return uint64 hashes of keys (int64, or an object array of str). Hashes are equal on every machine."""
    if keys.dtype == object:
        texts = (xxhash.xxh3_64_intdigest(key.encode()) for key in keys)
        return np.fromiter(texts, np.uint64, len(keys))
    # The finaliser of splitmix64 (Steele, Lea and Flood 2014). Every bit of the key flips about half of the hash bits.
    hashes = keys.astype(np.int64, copy=False).view(np.uint64) + _STEP
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _MULTIPLIERS[0]
    hashes = (hashes ^ (hashes >> np.uint64(27))) * _MULTIPLIERS[1]
    return hashes ^ (hashes >> np.uint64(31))


class KeyFilter:
    """A Bloom filter of keys. Immutable and thread-safe."""

    def __init__(self, words: np.ndarray) -> None:
        """`words` is uint64, at least one whole block."""
        self._words = words
        self._blocks = np.uint64(len(words) // WORDS_IN_BLOCK)

    @classmethod
    def of(cls, hashes: np.ndarray) -> KeyFilter:
        """Build a filter from the hashes of all keys (`hash_keys`), in any order."""
        blocks = max(1, -(-len(hashes) * BITS_FOR_KEY // (64 * WORDS_IN_BLOCK)))
        made = cls(np.zeros(blocks * WORDS_IN_BLOCK, np.uint64))
        for words, bits in made._probes(hashes):
            np.bitwise_or.at(made._words, words, bits)
        return made

    def may_contain(self, hashes: np.ndarray) -> np.ndarray:
        """Return for each hash whether its key may be present (bool). False means that the key is absent."""
        found = np.ones(len(hashes), bool)
        for words, bits in self._probes(hashes):
            found &= (self._words[words] & bits) != 0
        return found

    def _probes(self, hashes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each probe the word and the bit of each hash. The hash's upper half selects the block; nine bits
        per probe select the bit within the block."""
        # There are at most 2**32 blocks, so that the product stays below 2**64.
        blocks = ((hashes >> np.uint64(32)) * self._blocks) >> np.uint64(32)
        first = blocks.astype(np.int64) * WORDS_IN_BLOCK
        places = hashes * _STEP
        probes = []
        for probe in range(PROBES):
            place = (places >> np.uint64(9 * probe)) & np.uint64(511)
            words = first + (place >> np.uint64(6)).astype(np.int64)
            probes.append((words, np.uint64(1) << (place & np.uint64(63))))
        return probes

    def to_bytes(self) -> bytes:
        """Serialize for `from_bytes`; the caller adds a checksum."""
        return _HEADER.pack(_MAGIC, int(self._blocks)) + self._words.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> KeyFilter:
        """Deserialize. Raises CorruptError unless `to_bytes` can have written it."""
        data = memoryview(data)
        if len(data) < _HEADER.size:
            raise CorruptError(f"a key filter must have at least {_HEADER.size} bytes (got {len(data)})")
        magic, blocks = _HEADER.unpack_from(data)
        words = data[_HEADER.size :]
        if magic != _MAGIC or not 1 <= blocks <= _MOST_BLOCKS or len(words) != 8 * WORDS_IN_BLOCK * blocks:
            raise CorruptError(
                f"a key filter has the mark {magic!r} and {len(words)} bytes for {blocks} blocks; expected the mark "
                f"{_MAGIC!r} and {8 * WORDS_IN_BLOCK} bytes for each of 1 to {_MOST_BLOCKS} blocks"
            )
        return cls(np.frombuffer(words, "<u8").astype(np.uint64))
