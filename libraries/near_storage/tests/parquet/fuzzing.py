"""Randomly broken footers: each gives a FooterError, or a Footer from which everything else can be derived.

To run it by hand with a count and a seed: python -m libraries.near_storage.tests.parquet.fuzzing 10000 1
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from libraries.filters.pruning import prune
from libraries.filters.tree import And, Comparison, In, IsNull, Literal, Not, Predicate, Prefix
from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.compact import from_footer, load
from libraries.near_storage.parquet.footer import parse_footer
from libraries.near_storage.tests.parquet.footers import chunk, one_column, statistics
from libraries.near_storage.tests.parquet.tables import WRITERS
from libraries.near_storage.tests.parquet.thrift_writing import varint

MOST_S = 5.0
"""Limit of CPU seconds for a footer of some 30 kB; a correct one takes 20 ms."""
MOST_MORE_BYTES = 500 << 20
"""Limit of memory growth of the process, over all footers."""

FILTER: Predicate = Not(
    And(
        (
            Comparison("<", "int64", Literal(5, pa.int64())),
            Comparison("!=", "float64", Literal(0.0, pa.float64())),
            In("string", (Literal("a", pa.string()), Literal("b", pa.string()))),
            Prefix("string", "text"),
            IsNull("a"),
        )
    )
)


def originals(folder: Path) -> list[tuple[bytes, int]]:
    """Return correct footers, each with the size of its file."""
    found = []
    for number, writer in enumerate(("polars", "fastparquet", "pyarrow, int96", "duckdb")):
        path = folder / f"{number}.parquet"
        WRITERS[writer](path, random.Random(number))
        data = path.read_bytes()
        length = int.from_bytes(data[-8:-4], "little")
        found.append((data[-8 - length : -8], len(data)))
    by_hand = one_column(
        [chunk(stats=statistics(bytes(8), bytes(8), nulls=1, exact=(True, False)), start=4 + 10 * n) for n in range(9)]
    )
    return [*found, (by_hand, len(by_hand) + 108)]


def mutated(rng: random.Random, footer: bytes, others: list[tuple[bytes, int]]) -> bytes:
    """Make one to four changes: bits, bytes, numbers; pieces lost, doubled, moved, foreign; truncation."""
    data = bytearray(footer)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        place = rng.randrange(len(data) + 1)
        size = rng.choice([1, 1, 2, 8, 100])
        piece = bytes(data[place : place + size])
        match rng.randrange(8):
            case 0 if place < len(data):
                data[place] ^= 1 << rng.randrange(8)
            case 1 if place < len(data):
                data[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0xF9, 0xFC, 0x1C, 0x19, rng.randrange(256)])
            case 2:
                data[place : place + rng.randrange(3)] = varint(
                    rng.choice([0, 1, 2**31, 2**32, 2**63, 2**64 - 1, 2**70])
                )
            case 3:
                del data[place : place + size]
            case 4:
                data[place:place] = piece * rng.choice([1, 2, 50])
            case 5:
                other = rng.choice(others)[0]
                start = rng.randrange(len(other))
                data[place : place + size] = other[start : start + size]
            case 6:
                data[place:place] = bytes((rng.choice([0x19, 0x1C, 0x99, 0xF9, 0xFB, 0x00]),)) * rng.choice(
                    [1, 40, 2000]
                )
            case 7 if rng.random() < 0.3:
                del data[place:]
    return bytes(data)


def outcome(footer: bytes, file_bytes: int) -> str:
    """Return 'taken' or the beginning of the error; raise any unexpected exception."""
    try:
        taken = parse_footer(footer, file_bytes)
    except FooterError as error:
        return str(error).split(":")[0]
    metadata = load(from_footer(taken).save())
    prune(metadata, FILTER)
    for group in taken.row_groups:
        for one in group.chunks:
            assert 0 <= one.start <= one.start + one.length <= taken.start
    return "taken"


def run(count: int, seed: int, folder: Path) -> Iterator[tuple[str, float]]:
    """Yield outcome and CPU seconds for each of `count` footers."""
    rng = random.Random(seed)
    right = originals(folder)
    for footer, file_bytes in right:
        assert outcome(footer, file_bytes) == "taken"
    for _ in range(count):
        footer, file_bytes = rng.choice(right)
        broken = mutated(rng, footer, right)
        start = time.process_time()
        ended = outcome(broken, file_bytes - len(footer) + len(broken))
        yield ended, time.process_time() - start


def main() -> None:
    """Print the number of each outcome, the longest time and the memory."""
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        outcomes = list(run(count, seed, Path(folder)))
    longest = max(seconds for _, seconds in outcomes)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    for ended, times in Counter(ended for ended, _ in outcomes).most_common():
        print(f"{times:7d}  {ended}")
    print(f"{len(outcomes)} footers, seed {seed}: the longest took {longest:.3f} s, memory grew by {grown >> 20} MiB")
    if longest > MOST_S or grown > MOST_MORE_BYTES:
        sys.exit("beyond the limits")


if __name__ == "__main__":
    main()
