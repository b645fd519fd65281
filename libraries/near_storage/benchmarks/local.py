"""Reading near the storage in one process, as ratios: `python -m libraries.near_storage.benchmarks.local`.

Each ratio compares the minimum of several alternating calls of one run, so that load on the machine affects both sides.
Files are made in a temporary folder and removed at the end. All reads are from warm pages.
"""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench_runner.clock import cpu_ns, now_ns
from data_generator import parquet_files
from data_generator.generated.warehouse import snowset
from libraries.filters.binding import bind
from libraries.filters.pruning import prune
from libraries.filters.tree import And, Comparison, Literal, Predicate
from libraries.near_storage.local import LocalFiles
from libraries.near_storage.parquet import compact
from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.query import Query
from tests.selfbench.costs import Check, least_ns, print_checks

ROW_BYTES = 155
"""Approximate size of a row in a file."""
GROUP_ROWS = 19_406
"""Rows of a row group in the thesis, section 8.1."""
GROUPS_OF_A_FILE = 223
ANSWERED_MEGABYTES = 400
"""Stored size of the rows that are returned in full, by two ways. Answers for 2.3 GB did not fit in 23 GB of memory."""
SMALL_GROUP_ROWS = 550
"""Rows of a group where only footers are measured; footers do not grow with the rows of a group."""
PRUNED_GROUPS = 100_000
TIMESTAMP = pa.timestamp("us")

Least = Callable[[int, dict[str, Callable[[], object]]], dict[str, int]]
"""Return the minimum nanoseconds of each call, over at least the given number of rounds."""


def below(condition: snowset.Condition) -> Predicate:
    """Return the filter for a condition on the clustered column."""
    return Comparison("<", condition.column, Literal(condition.below, TIMESTAMP))


def written(folder: Path, rows: int, group_rows: int, file_rows: int) -> list[Path]:
    """Write the stand-in for Snowset as files, clustered by time."""
    dataset = snowset.build("snowset", rows, {"block_rows": str(group_rows)})
    layout = parquet_files.Layout(file_rows, group_rows)
    return list(parquet_files.prepare(dataset, layout, folder).paths)


def selectivity(folder: Path, megabytes: int, least: Least) -> Iterator[Check]:
    """Compare V2 at 1 % of the row groups with all of them, and V2 at all of them with bare system calls."""
    groups = max(100, megabytes * 1_000_000 // (GROUP_ROWS * ROW_BYTES))
    rows = groups * GROUP_ROWS
    files = LocalFiles.prepare(written(folder, rows, GROUP_ROWS, GROUP_ROWS * min(groups, GROUPS_OF_A_FILE)))
    yield Check(
        "data set", f"{files.stored_bytes / 1e9:.2f} GB, {groups} row groups", "-", None
    )  # fmt: skip
    one_percent = snowset.condition("snowset", rows, GROUP_ROWS, 0.01, scattered=False)
    some, everything = Query("t", None, below(one_percent)), Query("t")
    shown = Query("t", ("queryId", "createdTime"), below(one_percent))
    for way in ("v1", "v2"):
        assert files.query(shown, way)[0].num_rows == one_percent.rows
    share = groups / len(one_percent.blocks)

    calls = _bare_calls(files)
    reused = _allocated(max(length for places in calls.values() for _, length in places))
    spent = least(
        2,
        {
            "all": lambda: _drained(files.parts(everything)),
            "alike": lambda: _read_bare(calls, _allocated),
            "one": lambda: _read_bare(calls, lambda length: reused[:length]),
        },
    )
    speed = files.stored_bytes / spent["all"]
    yield Check("V2, all row groups, of bytes read", f"{speed:.2f} GB/s", "-", None)
    ratio = spent["alike"] / spent["all"]
    yield Check("V2, all row groups, of preadv into the same buffers", f"{ratio:.2f}", "at least 0.9", ratio >= 0.9)
    yield Check("... into one reused buffer", f"{spent['one'] / spent['all']:.2f}", "-", None)
    few = least(10, {"some": lambda: _drained(files.parts(some))})["some"]
    ratio = spent["all"] / few
    yield Check(f"V2 at 1 %, work of nodes (ideal {share:.0f})", f"{ratio:.1f} times", "at least 35", ratio >= 35)


def answers(folder: Path, megabytes: int, least: Least) -> Iterator[Check]:
    """Compare filtered rows from 1 % of the row groups with those from all of them.

    Uses fewer rows than other checks: answers are held in memory, where they are several times their stored size.
    """
    groups = max(100, min(megabytes, ANSWERED_MEGABYTES) * 1_000_000 // (GROUP_ROWS * ROW_BYTES))
    rows = groups * GROUP_ROWS
    place = folder / "answers"
    place.mkdir()
    files = LocalFiles.prepare(written(place, rows, GROUP_ROWS, GROUP_ROWS * min(groups, GROUPS_OF_A_FILE)))
    yield Check("data set of the answers", f"{files.stored_bytes / 1e9:.2f} GB, {groups} row groups", "-", None)
    one_percent = snowset.condition("snowset", rows, GROUP_ROWS, 0.01, scattered=False)
    some, everything = Query("t", None, below(one_percent)), Query("t")
    answered = least(
        1,
        {f"{way} {name}": (lambda way=way, query=query: files.query(query, way))
         for way in ("v1", "v2") for name, query in (("some", some), ("all", everything))},
    )  # fmt: skip
    for way in ("v1", "v2"):
        ratio = answered[f"{way} all"] / answered[f"{way} some"]
        target = "at least 35" if way == "v2" else "-"
        yield Check(f"{way.upper()} at 1 %, answers with filter", f"{ratio:.1f} times", target, ratio >= 35)
        speed = files.stored_bytes / answered[f"{way} all"]
        yield Check(f"{way.upper()}, all row groups, answers with filter", f"{speed:.2f} GB/s", "-", None)


def _drained(batches: Iterator[pa.RecordBatch]) -> None:
    for _ in batches:
        pass


def _bare_calls(files: LocalFiles) -> dict[Path, list[tuple[int, int]]]:
    """Return offset and length of each batch of parts, by file; the chunks of a batch are adjacent."""
    paths = iter(file.path for file in files._files)
    found: dict[Path, list[tuple[int, int]]] = {}
    calls: list[tuple[int, int]] = []
    for batch in files.parts(Query("t")):
        offset = batch.column("offset")[0].as_py()
        if not calls or offset < calls[-1][0]:
            calls = found[next(paths)] = []
        calls.append((offset, batch.column("data").buffers()[2].size))
    return found


def _read_bare(calls: dict[Path, list[tuple[int, int]]], memory: Callable[[int], memoryview]) -> None:
    """Make only the system calls. Like a consumer of parts, hold each buffer until the next one is filled."""
    for path, places in calls.items():
        fd = os.open(path, os.O_RDONLY)
        for offset, length in places:
            held = memory(length)
            if os.preadv(fd, [held], offset) != length:
                raise OSError("short read: use --folder to put the files on a local disk")
        os.close(fd)


def _allocated(length: int) -> memoryview:
    return memoryview(pa.allocate_buffer(length)).cast("B")


def nothing(folder: Path, count: int, least: Least) -> Iterator[Check]:
    """Measure the fixed cost of a query: many files with no matching row group."""
    (path,) = written(
        folder, SMALL_GROUP_ROWS * GROUPS_OF_A_FILE, SMALL_GROUP_ROWS, SMALL_GROUP_ROWS * GROUPS_OF_A_FILE
    )
    links = [folder / f"link {number}" for number in range(count)]
    for link in links:
        link.hardlink_to(path)
    files = LocalFiles.prepare(links)
    query = Query("t", None, Comparison("<", "createdTime", Literal(0, TIMESTAMP)))
    spent = least(20, {"v2": lambda: files.query(query), "cached": lambda: files.query(query, "v1")})
    parsed = least(1, {"parsed": lambda: files.query(query, "v1", "parsed")})["parsed"]
    yield Check(
        f"{count} files, {files.metadata.groups:,} row groups, nothing matches",
        f"{spent['v2'] / 1e6:.3f} ms",
        "-",
        None,
    )
    ratio = parsed / spent["v2"]
    yield Check("V1 that parses footers, over V2", f"{ratio:,.0f} times", "at least 1000", ratio >= 1000)
    ratio = spent["v2"] / spent["cached"]
    yield Check("V2 over V1 with cached footers", f"{ratio:.2f}", "at most 1.1", ratio <= 1.1)


def pruning(folder: Path, least: Least) -> Iterator[Check]:
    """Prune many row groups by a filter on three of 93 columns."""
    (path,) = written(
        folder, SMALL_GROUP_ROWS * GROUPS_OF_A_FILE, SMALL_GROUP_ROWS, SMALL_GROUP_ROWS * GROUPS_OF_A_FILE
    )
    file = LocalFiles.prepare([path])
    metadata = compact.together([file.metadata] * -(-PRUNED_GROUPS // GROUPS_OF_A_FILE))
    where = And(
        (
            Comparison(">=", "createdTime", Literal(snowset.BEGIN_US, TIMESTAMP)),
            Comparison("<", "warehouseId", Literal(snowset.FIRST_WAREHOUSE + 5 * snowset.WAREHOUSES, pa.int64())),
            Comparison(">", "durationTotal", Literal(1_000, pa.int64())),
        )
    )
    bound = bind(where, file.schema)
    spent = least(20, {"prune": lambda: prune(metadata, bound)})["prune"] / 1e6
    kept = int(prune(metadata, bound).may_be_true.sum())
    what = f"prune {metadata.groups:,} row groups x {len(metadata.columns)} columns by three columns ({kept:,} kept)"
    yield Check(what, f"{spent:.2f} ms", "at most 3 ms", spent <= 3)
    with path.open("rb") as footer:
        read_s = least_ns(3, {"read": lambda: read_footer(footer)}, cpu_ns)["read"] / 1e9
    yield Check("read a footer with bounds checks, CPU time", f"{read_s:.2f} s", "at most 2 s", read_s <= 2)
    yield from _shares(path, file.metadata, metadata)


def _shares(path: Path, one: compact.CompactMetadata, many: compact.CompactMetadata) -> Iterator[Check]:
    """Compare the size of compact metadata with the footer and with pyarrow's parsed footer."""
    raw = pq.read_metadata(path).serialized_size
    gc.collect()
    before = psutil.Process().memory_info().rss
    held = [pq.read_metadata(path) for _ in range(20)]
    parsed = (psutil.Process().memory_info().rss - before) / len(held)
    for size, what in ((one.nbytes, "one file"), (many.nbytes / many.files, "of many")):
        for other, name, target in ((parsed, "pyarrow's parsed", 0.04), (raw, "raw footer", 0.3)):
            share = size / other
            yield Check(
                f"compact metadata ({size:,.0f} B, {what}) of {name} ({other:,.0f} B)",
                f"{share:.1%}", f"at most {target:.0%}", share <= target,
            )  # fmt: skip


@click.command()
@click.option("--megabytes", default=2_300, show_default=True, help="Size of the data set.")
@click.option("--files", default=640, show_default=True, help="Number of links to a file without matches.")
@click.option("--times", default=3, show_default=True, help="Minimum number of measurements of each call.")
@click.option("--cpu", is_flag=True, help="Measure CPU time instead of elapsed time, for a machine with other load.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Folder for the temporary files.")
@click.option("--only", type=click.Choice(["selectivity", "nothing", "pruning"]), help="One part alone.")
def main(megabytes: int, files: int, times: int, cpu: bool, folder: Path | None, only: str | None) -> None:
    """Print the ratios and their targets."""

    def least(more: int, calls: dict[str, Callable[[], object]]) -> dict[str, int]:
        return least_ns(times * more, calls, cpu_ns if cpu else now_ns)

    parts: dict[str, tuple[str, Callable[[Path], Iterator[Check]]]] = {
        "pruning": ("Pruning and metadata", lambda place: pruning(place, least)),
        "nothing": ("Nothing matches", lambda place: nothing(place, files, least)),
        "selectivity": (
            "Clustered row groups",
            lambda place: itertools.chain(selectivity(place, megabytes, least), answers(place, megabytes, least)),
        ),
    }
    for name, (title, checks) in parts.items():
        if only in (None, name):
            place = Path(tempfile.mkdtemp(prefix="near-storage-", dir=folder))
            try:
                print_checks(title, checks(place))
            finally:
                shutil.rmtree(place)


if __name__ == "__main__":
    main()
