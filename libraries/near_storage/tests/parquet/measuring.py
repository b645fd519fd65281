"""What the footer, compact metadata and pruning cost, against their targets.

By hand: python -m libraries.near_storage.tests.parquet.measuring
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from libraries.near_storage.parquet.compact import CompactMetadata, from_footer, load, together
from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.parquet.isolation import read_footer_apart
from libraries.near_storage.parquet.pruning import prune
from libraries.near_storage.predicates.tree import And, Comparison, In, Literal

COLUMNS, GROUPS = 93, 223
FILES = 449
"""Of the one file's row groups, put together: 100,127 row groups."""
SEED = 2121
PARSED = 8
"""How often pyarrow parses the footer, to weigh what it makes of it."""

TARGETS = {
    "read_footer_processor_s": 2.0,
    "compact_of_raw_percent": 30.0,
    "compact_of_parsed_percent": 4.0,
    "prune_three_columns_ms": 3.0,
}

THREE_COLUMNS = And(
    (
        Comparison("<", "column_0", Literal(1 << 38, pa.int64())),
        Comparison(">", "column_1", Literal(0.5, pa.float64())),
        Comparison("==", "column_3", Literal("user000000500000", pa.string())),
    )
)


def write_file(path: Path) -> None:
    """A file of 93 columns of six kinds in 223 row groups of 200 rows."""
    rng = np.random.default_rng(SEED)
    rows = GROUPS * 200
    makers: list[Callable[[], pa.Array]] = [
        lambda: pa.array(rng.integers(0, 1 << 40, rows)),
        lambda: pa.array(rng.random(rows), mask=rng.random(rows) < 0.1),
        lambda: pa.array(rng.integers(0, 100, rows).astype("i4")),
        lambda: pa.array([f"user{number:012d}" for number in rng.integers(0, 1_000_000, rows)]),
        lambda: pa.array(rng.integers(0, 1 << 40, rows)).cast(pa.timestamp("us")),
        lambda: pa.array(rng.integers(0, 2, rows) == 1),
    ]
    columns = {f"column_{number}": makers[number % len(makers)]() for number in range(COLUMNS)}
    pq.write_table(pa.table(columns), path, row_group_size=200)


def best_s(call: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several runs. Long ones in Python are better told by the processor's time on a busy machine."""
    found = []
    for _ in range(times):
        start = clock()
        call()
        found.append(clock() - start)
    return min(found)


def parsed_bytes(path: Path) -> float:
    """What pyarrow's parsed metadata of the file take, by the growth of this process."""
    process = psutil.Process()
    kept = [pq.read_metadata(path)]
    before = process.memory_info().rss
    kept += [pq.read_metadata(path) for _ in range(PARSED)]
    return (process.memory_info().rss - before) / PARSED


def measured(path: Path) -> dict[str, float]:
    """All figures; those with a target are named as in TARGETS."""
    with path.open("rb") as file:
        footer = read_footer(file)
        read_s = best_s(lambda: read_footer(file), 3, time.process_time)
    compact = from_footer(footer)
    parsed = parsed_bytes(path)
    many: CompactMetadata = together([compact] * FILES)
    saved = compact.save()
    in_list = In("column_0", tuple(Literal(number * 1000, pa.int64()) for number in range(1000)))
    return {
        "raw_footer_bytes": footer.length,
        "parsed_footer_bytes": parsed,
        "compact_bytes": compact.nbytes,
        "compact_of_raw_percent": 100 * compact.nbytes / footer.length,
        "compact_of_parsed_percent": 100 * compact.nbytes / parsed,
        "pyarrow_parse_processor_s": best_s(lambda: pq.read_metadata(path), 3, time.process_time),
        "read_footer_processor_s": read_s,
        "read_footer_apart_s": best_s(lambda: read_footer_apart(path), 2),
        "from_footer_processor_s": best_s(lambda: from_footer(footer), 3, time.process_time),
        "load_s": best_s(lambda: load(saved), 10),
        "together_s": best_s(lambda: together([compact] * FILES), 2),
        "row_groups_pruned": many.groups,
        "prune_three_columns_ms": 1e3 * best_s(lambda: prune(many, THREE_COLUMNS), 100),
        "prune_1000_in_list_ms": 1e3 * best_s(lambda: prune(many, in_list), 30),
    }


def main() -> None:
    """Print all figures, and end with 1 where a target is missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        write_file(path)
        found = measured(path)
    for name, value in found.items():
        target = f"   (at most {TARGETS[name]:g})" if name in TARGETS else ""
        print(f"{name:28} {value:14.4g}{target}")
    if any(found[name] > target for name, target in TARGETS.items()):
        sys.exit("a target is missed")


if __name__ == "__main__":
    main()
