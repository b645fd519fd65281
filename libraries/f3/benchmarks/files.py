"""Compare F3 files with Parquet and Vortex: `make selfbench-f3` prints each figure next to its target.

The project's benchmark runner measures whole tables. It verifies what it reads, uses one thread, and reads into Arrow.
This module measures everything else in its own process, and takes turns between the formats. Ratios compare times of
the same round, because the machine's speed drifts.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench_runner.clock import cpu_ns, now_ns
from bench_runner.machine.linux import high_water_bytes, own_memory, reset_high_water
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.records import Cell
from bench_runner.results.statistics import CellSummary, ratio_interval, summarise
from bench_runner.run.measuring import measure
from bench_runner.run.options import Options
from bench_runner.suites import SUITES
from data_generator.catalogue import resolve
from format_bench.progress import watching
from libraries import f3
from libraries.f3.benchmarks.sizes import lineitem, of_distinct_values, of_tables
from libraries.f3.columns.dictionaries import has_dictionaries
from libraries.f3.encodings import unit_codec
from libraries.f3.examples import linear
from libraries.f3.writer import ROWS_PER_UNIT
from tests.selfbench.costs import Check, print_checks, told, within

ROWS = 1_000_000
ROUNDS = 7
NATIVE, WASM = "f3[codec=adaptive]", "f3[codec=adaptive,decoder=wasm]"
PARQUET, VORTEX = "parquet[engine=pyarrow,codec=none]", "vortex[engine=vortex-data]"
WIDE_COLUMNS, WIDE_ROWS, WIDE_CHOSEN = 10_000, 65_536, 10
TAKES = 20
MODULE_BYTES = 150_000
SCOPES = ("none", "local", "shared", "best")

Calls = Mapping[str, Callable[[], object]]


def compared(what: str, ours: Mapping[int, float], theirs: Mapping[int, float], most: float | None) -> Check:
    """Return one line of text with the ratios of F3's times to the other format's, computed round by round."""
    ratio = ratio_interval(ours, theirs)
    target = "-" if most is None else f"at most {most:.3g}"
    if ratio is None:
        return Check(what, "no figure", target, False)
    return Check(what, told(ratio), target, None if most is None else within(ratio, 0, most))


def in_turns(calls: Calls, rounds: int) -> dict[str, dict[int, float]]:
    """Return the wall-clock nanoseconds of each call by round. Each call is warmed up once. Its result is freed before
    the next call."""
    for call in calls.values():
        call()
    found: dict[str, dict[int, float]] = {name: {} for name in calls}
    for number in range(rounds):
        for name in list(calls)[:: 1 if number % 2 else -1]:
            started = now_ns()
            result = calls[name]()
            found[name][number] = now_ns() - started
            del result
    return found


def apart(call: Callable[..., Any], *arguments: object) -> Any:
    """Return the result of a call in a new process, in which nothing has been loaded, compiled or allocated yet."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


# --- whole tables, measured by the runner --------------------------------------------------------------------------


def whole_tables(folder: Path, rows: int, rounds: int) -> Iterator[Check]:
    """Yield the times to read and write the tables eq and core, and the file sizes."""
    request = Request(
        datasets=("^eq$", "^core$"),
        formats=(NATIVE, WASM, PARQUET, VORTEX),
        tracks=("plain",),
        rows=rows,
        threads="1",
        target="arrow",
    )
    plan = make_plan([SUITES["tabular"]], request)
    with watching() as watcher:
        run, _ = measure(plan, request, Options(rounds=rounds, fidelity=False), folder, ["selfbench-f3"], watcher)
    summaries = summarise(run.samples)
    for dataset, read_most, size_most in (("eq", 0.4, 1.0), ("core", 1.0, 1.1)):
        cells = _by_name(summaries, dataset)

        def line(
            what: str, operation: str, ours: str, theirs: str, most: float, cells: Any = cells, *, synced: bool = False
        ) -> Check:
            left, right = (_rounds_of(cells.get((operation, variant)), synced) for variant in (ours, theirs))
            return compared(what, left, right, most)

        yield line(f"read {dataset}: native/Parquet", "read", NATIVE, PARQUET, read_most)
        yield line(f"read {dataset}: native/Vortex (the goal beyond)", "read", NATIVE, VORTEX, 1.0)
        yield line(f"read {dataset}: Wasm/native", "read", WASM, NATIVE, 1.35)
        yield line(f"read {dataset}: Wasm/Parquet", "read", WASM, PARQUET, 1.0)
        yield line(f"write {dataset}, synced: F3/Parquet", "save", NATIVE, PARQUET, 3.0, synced=True)
        for theirs, most in ((PARQUET, size_most), (VORTEX, 1.1)):
            yield _sizes(f"size {dataset}: F3/{theirs.partition('[')[0]}", cells, theirs, most)
        cores = [each.cores_used for (operation, _), each in cells.items() if operation == "read" and each.cores_used]
        busiest = max(cores, default=0.0)
        yield Check(f"read {dataset}: most CPU over wall", f"{busiest:.2f}", "at most 1.05", busiest <= 1.05)


def _by_name(summaries: Mapping[Cell, CellSummary], dataset: str) -> dict[tuple[str, str], CellSummary]:
    return {(cell.operation, cell.variant): each for cell, each in summaries.items() if cell.dataset == dataset}


def _rounds_of(summary: CellSummary | None, synced: bool) -> Mapping[int, float]:
    if summary is None:
        return {}
    wall: Mapping[int, float] = summary.by_round.get("wall_ns", {})
    sync = summary.by_round.get("sync_ns", {}) if synced else {}
    return {number: value + sync.get(number, 0) for number, value in wall.items()}


def _sizes(what: str, cells: Mapping[tuple[str, str], CellSummary], theirs: str, most: float) -> Check:
    sizes = [
        cells[key].figures["size_bytes"].median
        for key in (("save", NATIVE), ("save", theirs))
        if key in cells and "size_bytes" in cells[key].figures
    ]
    if len(sizes) < 2:
        return Check(what, "no figure", f"at most {most}", False)
    ratio = sizes[0] / sizes[1]
    return Check(what, f"{ratio:.3f}", f"at most {most}", ratio <= most)


# --- parts of files ------------------------------------------------------------------------------------------------


def projection(folder: Path, rounds: int) -> Iterator[Check]:
    """Yield the time to open a file and read 10 of its 10,000 columns."""
    random = np.random.default_rng(1)
    # There are 100 different columns, each stored under 100 names. Neither format detects equal columns.
    some = [pa.array(random.random(WIDE_ROWS, np.float32)) for _ in range(100)]
    table = pa.table(
        [some[place % 100] for place in range(WIDE_COLUMNS)], [f"f{place}" for place in range(WIDE_COLUMNS)]
    )
    pq.write_table(table, folder / "wide.parquet", compression="none")
    f3.write(table, folder / "wide.f3")
    chosen = [f"f{place}" for place in sorted(random.choice(WIDE_COLUMNS, WIDE_CHOSEN, replace=False))]
    found = in_turns(
        {
            "f3": partial(_read_f3, folder / "wide.f3", columns=chosen),
            "parquet": lambda: pq.read_table(folder / "wide.parquet", columns=chosen, use_threads=False),
        },
        3 * rounds,
    )
    what = f"{WIDE_CHOSEN} of {WIDE_COLUMNS:,} columns, {WIDE_ROWS:,} rows: F3/Parquet"
    yield Check("  F3, median", f"{statistics.median(found['f3'].values()) / 1e6:.1f} ms", "-", None)
    yield compared(what, found["f3"], found["parquet"], 1 / 10)


def one_row(folder: Path, table: pa.Table, rounds: int) -> Iterator[Check]:
    """Yield the time to open core and read one random row, compared with reading its row group from Parquet."""
    row = int(np.random.default_rng(2).integers(len(table)))
    f3.write(table, folder / "row.f3")
    pq.write_table(table, folder / "row.parquet", compression="none")
    pq.write_table(table, folder / "groups.parquet", compression="none", row_group_size=ROWS_PER_UNIT)
    calls: Calls = {
        "f3": partial(_read_f3, folder / "row.f3", rows=[row]),
        "parquet": lambda: _row_group(folder / "row.parquet", row),
        "small groups": lambda: _row_group(folder / "groups.parquet", row),
    }
    found = in_turns(calls, 3 * rounds)
    yield compared("one row of core: F3/Parquet's row group", found["f3"], found["parquet"], 1 / 5)
    what = f"one row of core: F3/Parquet's row group of {ROWS_PER_UNIT:,} rows"
    yield compared(what, found["f3"], found["small groups"], None)


def some_rows(folder: Path, eq: pa.Table, rounds: int) -> Iterator[Check]:
    """Yield the time to read random rows from open, cached files, compared with Lance, and the files' sizes."""
    random = np.random.default_rng(3)
    blobs = pa.table({"blob": [random.bytes(4096) for _ in range(25_000)]})
    for name, table, count, most in (
        ("1,000,000 x 4", eq.select(["str_1", "int_1", "float_1", "bool_1"]), 20, 0.7),
        ("lineitem", lineitem(), 1, 1.0),
        ("25,000 values of 4 KiB", blobs, 10, 1.0),
    ):
        f3.write(table, folder / f"{count}.f3")
        lance.write_dataset(table, folder / f"{count}.lance")
        dataset = lance.dataset(folder / f"{count}.lance")
        asked = [np.sort(random.choice(len(table), count, replace=False)) for _ in range(TAKES)]
        with f3.open(folder / f"{count}.f3") as file:
            calls: Calls = {
                "f3": lambda file=file, asked=asked: [file.read(rows=rows) for rows in asked],  # type: ignore[misc]
                "lance": lambda dataset=dataset, asked=asked: [dataset.take(rows) for rows in asked],  # type: ignore[misc]
            }
            found = in_turns(calls, 3 * rounds)
        what = f"{count} random rows of {name}, warm, file open: F3/Lance"
        yield compared(what, found["f3"], found["lance"], most)
        yield Check("  F3, median", f"{statistics.median(found['f3'].values()) / 1e6 / TAKES:.2f} ms", "-", None)
        theirs = sum(each.stat().st_size for each in (folder / f"{count}.lance").rglob("*") if each.is_file())
        ratio = (folder / f"{count}.f3").stat().st_size / theirs
        yield Check("  size of the file: F3/Lance", f"{ratio:.3f}", "at most 1", ratio <= 1)


def filtered_rows(folder: Path, core: pa.Table, rounds: int) -> Iterator[Check]:
    """Yield the time to read 1 % of the rows by a filter from open, cached files, compared with Parquet by Arrow's
    data sets. In sorted rows, both skip what zone maps and statistics rule out."""
    name = next(field.name for field in core.schema if pa.types.is_int64(field.type))
    ordered = core.sort_by(name)
    edges = np.sort(ordered.column(name).drop_null().to_numpy())
    low, high = int(edges[len(edges) // 2]), int(edges[len(edges) // 2 + len(edges) // 100])
    where = (pc.field(name) >= low) & (pc.field(name) < high)
    columns = core.column_names[:4]
    for order, table in {"random": core, "sorted": ordered}.items():
        f3.write(table, folder / "filter.f3")
        pq.write_table(table, folder / "filter.parquet", compression="none", row_group_size=ROWS_PER_UNIT)
        dataset = ds.dataset(folder / "filter.parquet")
        with f3.open(folder / "filter.f3", threads=1) as file:
            calls: Calls = {
                "f3": partial(file.read, columns, where=where),
                "parquet": partial(dataset.to_table, columns=columns, filter=where, use_threads=False),
            }
            if not file.read(columns, where=where).equals(dataset.to_table(columns, where, use_threads=False)):
                raise RuntimeError(f"{order} rows: the filter found other rows in F3 than in Parquet")
            found = in_turns(calls, 3 * rounds)
        yield compared(f"1 % of core by a filter, {order} rows: F3/Parquet", found["f3"], found["parquet"], None)
        yield Check("  F3, median", f"{statistics.median(found['f3'].values()) / 1e6:.2f} ms", "-", None)


def two_threads(folder: Path, tables: Mapping[str, pa.Table], rounds: int) -> Iterator[Check]:
    """Yield the time to read whole tables with all cores, compared with one thread."""
    for name, table in tables.items():
        f3.write(table, folder / "threads.f3")

        def read(threads: int | None) -> pa.Table:
            with f3.open(folder / "threads.f3", threads=threads) as file:
                return file.read()

        found = in_turns({"one": partial(read, 1), "all": partial(read, None)}, 3 * rounds)
        yield compared(f"all of {name}: all cores/one thread", found["all"], found["one"], 0.6)
    yield from _what_two_threads_give(folder, tables["eq"], rounds)


def repeated_reads(folder: Path, tables: Mapping[str, pa.Table], rounds: int) -> Iterator[Check]:
    """Yield the time to read tables again by Wasm, compared with native decoding, in one process."""
    for name, table in tables.items():
        f3.write(table, folder / "again.f3")
        calls = {
            prefer: partial(_read_f3, folder / "again.f3", prefer=prefer, threads=1) for prefer in ("native", "wasm")
        }
        found = in_turns(calls, 3 * rounds)
        yield compared(f"read {name} again, one thread: Wasm/native", found["wasm"], found["native"], 1.4)


def wide_tables(rounds: int) -> Iterator[Check]:
    """Yield the CPU time to write 10,000 columns of few rows, compared with Parquet."""
    random = np.random.default_rng(4)
    for rows in (1, 100, 5000):
        some = [pa.array(random.random(rows, np.float32)) for _ in range(50)]
        some += [pa.array(random.integers(0, 1000, rows)) for _ in range(50)]
        names = [f"f{place}" for place in range(WIDE_COLUMNS)]
        table = pa.table([some[place % 100] for place in range(WIDE_COLUMNS)], names)
        spent: dict[str, dict[int, float]] = {"f3": {}, "parquet": {}}
        for number in range(rounds):
            for name, write in (
                ("f3", partial(f3.write, table, io.BytesIO())),
                ("parquet", partial(pq.write_table, table, io.BytesIO(), compression="none")),
            ):
                started = cpu_ns()
                write()
                spent[name][number] = cpu_ns() - started
        yield compared(f"write {WIDE_COLUMNS:,} x {rows:,}, CPU: F3/Parquet", spent["f3"], spent["parquet"], 2.0)


def _what_two_threads_give(folder: Path, table: pa.Table, rounds: int) -> Iterator[Check]:
    """Yield the speed-up by two threads that the machine itself allows. Virtual CPUs may share a physical core and
    memory."""
    pq.write_table(table, folder / "threads.parquet", compression="none")
    halves = [np.zeros(table.nbytes // 2, np.uint8) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for what, call in (
            ("digests of as many bytes", lambda half: hashlib.sha256(half).digest()),
            ("copies of as many bytes into fresh memory", np.copy),
        ):
            found = in_turns(
                {
                    "one": lambda call=call: [call(half) for half in halves],  # type: ignore[misc]
                    "two": lambda call=call: list(pool.map(call, halves)),  # type: ignore[misc]
                },
                3 * rounds,
            )
            yield compared(f"  {what}: two threads/one", found["two"], found["one"], None)
    read = partial(pq.read_table, folder / "threads.parquet")
    found = in_turns({"one": partial(read, use_threads=False), "two": partial(read, use_threads=True)}, 3 * rounds)
    yield compared("  Parquet by pyarrow: two threads/one", found["two"], found["one"], None)


def _row_group(path: Path, row: int) -> pa.Table:
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if row < rows:
                return file.read_row_group(group, use_threads=False)
            row -= rows
    raise IndexError(row)


def _read_f3(path: Path, **chosen: Any) -> pa.Table:
    with f3.open(path, **{key: chosen.pop(key) for key in ("verify", "prefer", "threads") if key in chosen}) as file:
        return file.read(**chosen)


def checksums(folder: Path, table: pa.Table, rounds: int) -> Iterator[Check]:
    """Yield the time to read core with verified IOUnit checksums, compared with reading without verification."""
    f3.write(table, folder / "checksums.f3", checksums=True)
    calls = {verify: partial(_read_f3, folder / "checksums.f3", verify=verify) for verify in ("units", "none")}
    found = in_turns(calls, 3 * rounds)
    yield compared("read core: with checksums/without", found["units"], found["none"], 1.10)


# --- memory --------------------------------------------------------------------------------------------------------


def memory_of_writing(folder: Path, rows: int) -> Iterator[Check]:
    """Yield the peak memory of writing ten row groups, compared with one row group, each in a separate process."""
    peaks = {groups: apart(_write_groups, folder / f"{groups}.f3", rows // 10, groups) for groups in (1, 10)}
    ratio = peaks[10] / peaks[1]
    yield Check("  one row group, peak", f"{peaks[1] / 1e6:.0f} MB", "-", None)
    yield Check("peak while writing: ten row groups/one", f"{ratio:.3f}", "at most 1.1", ratio <= 1.1)


def _write_groups(path: Path, rows: int, groups: int) -> int:
    batches = list(resolve("core", {}, rows=rows).batches())
    with f3.Writer(path.with_suffix(".first"), batches[0].schema) as writer:
        writer.write_batch(batches[0].slice(0, 1000))
    before = own_memory().private_bytes
    reset_high_water()
    with f3.Writer(path, batches[0].schema, row_group_rows=rows) as writer:
        for _ in range(groups):
            for batch in batches:
                writer.write_batch(batch)
    return high_water_bytes() - before


# --- dictionaries and modules --------------------------------------------------------------------------------------


def dictionary_scopes(rows: int) -> Iterator[Check]:
    """Compare the scope chosen by sampling with each fixed dictionary scope, for each column of core, bi and log.

    The paper reports this comparison in table 3.
    """
    sizes: dict[str, list[int]] = {scope: [] for scope in SCOPES}
    seconds: dict[str, list[float]] = {scope: [] for scope in SCOPES}
    names = []
    for dataset in ("core", "bi", "log"):
        table = pa.Table.from_batches(resolve(dataset, {}, rows=rows).batches())
        for name in table.column_names:
            if not has_dictionaries(table.schema.field(name).type):
                continue
            names.append(f"{dataset}.{name}")
            for scope in SCOPES:
                file = io.BytesIO()
                started = cpu_ns()
                f3.write(table.select([name]), file, dictionary=scope)  # type: ignore[arg-type]
                seconds[scope].append((cpu_ns() - started) / 1e9)
                sizes[scope].append(file.tell())
    local = [min(pair) for pair in zip(sizes["none"], sizes["local"], strict=True)]
    for scope, called in (("shared", "Global"), ("best", "GLBest")):
        size = statistics.mean(ours / theirs for ours, theirs in zip(sizes[scope], local, strict=True))
        time = statistics.mean(ours / theirs for ours, theirs in zip(seconds[scope], seconds["none"], strict=True))
        text = f"{size:.1%} of the size, {time:.0%} of the time"
        yield Check(f"  {called} of Local, average of {len(names)} columns", text, "-", None)
    better = [min(pair) for pair in zip(local, sizes["shared"], strict=True)]
    worst, name = max((ours / theirs, name) for ours, theirs, name in zip(sizes["best"], better, names, strict=True))
    total = sum(sizes["best"]) / sum(better)
    yield Check("GLBest/the better of Local and Global, together", f"{total:.3f}", "at most 1.02", total <= 1.02)
    yield Check(f"  the same, worst column ({name})", f"{worst:.3f}", "-", None)


def modules(folder: Path, table: pa.Table) -> Iterator[Check]:
    """Yield the size of embedded modules, and the time to compile and to load a module."""
    f3.write(table.slice(0, 1000), folder / "modules.f3")
    with f3.open(folder / "modules.f3") as file:
        size_bytes = sum(module.size_bytes for module in file.modules)
    yield Check("embedded modules", f"{size_bytes / 1000:.0f} KB", "under 150 KB", size_bytes < MODULE_BYTES)
    for what in ("compiled the first time", "loaded from the cache"):
        milliseconds = apart(_milliseconds_to_prepare, folder / "cache")
        yield Check(f"  {what}", f"{milliseconds:.1f} ms", "-", None)


def _milliseconds_to_prepare(cache: Path) -> float:
    os.environ["XDG_CACHE_HOME"] = str(cache)
    # The first module of a process also starts the runtime.
    unit_codec.Decoder(Path(linear.__file__).with_name("linear.wasm").read_bytes()).prepare()
    core = unit_codec.modules()[unit_codec.CORE]
    started = now_ns()
    unit_codec.Decoder(core, prefer="wasm").prepare()
    return (now_ns() - started) / 1e6


@click.command()
@click.option("--rows", default=ROWS, show_default=True, help="Rows of the tables.")
@click.option("--rounds", default=ROUNDS, show_default=True, help="Rounds of the runner (others: three times as many).")
@click.option(
    "--only",
    type=click.Choice(["tables", "parts", "rows", "sizes", "memory", "dictionaries", "modules"]),
    help="Run only this part; 'parts' includes 'rows'.",
)
def main(rows: int, rounds: int, only: str | None) -> None:
    """Compare F3 files with Parquet and Vortex, and print each figure next to its target."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
        folder = Path(name)
        core = pa.Table.from_batches(resolve("core", {}, rows=rows).batches())
        if only in (None, "modules"):
            print_checks("modules", modules(folder, core))
        if only in (None, "tables"):
            (folder / "run").mkdir()
            print_checks("whole tables, one thread, into Arrow", whole_tables(folder / "run", rows, rounds))
        if only in (None, "parts"):
            print_checks("parts of files", one_row(folder, core, rounds))
        if only in (None, "parts", "rows"):
            eq = pa.Table.from_batches(resolve("eq", {}, rows=rows).batches())
            print_checks("some rows", some_rows(folder, eq, rounds))
            print_checks("filters", filtered_rows(folder, core, rounds))
            mixed = pa.Table.from_batches(resolve("bi", {}, rows=rows).batches())
            tables = {"eq": eq, "core": core, "lineitem": lineitem(), "bi": mixed}
            print_checks("threads", two_threads(folder, tables, rounds))
            print_checks("read again", repeated_reads(folder, {"eq": eq, "core": core}, rounds))
        if only in (None, "sizes"):
            print_checks("sizes of columns", of_distinct_values(rows))
            print_checks("sizes of tables", of_tables(rows // 4, rounds))
            print_checks("wide tables", wide_tables(rounds))
        if only in (None, "parts"):
            print_checks("checksums", checksums(folder, core, rounds))
            print_checks("projection", projection(folder, rounds))
        if only in (None, "memory"):
            print_checks("memory", memory_of_writing(folder, rows))
        if only in (None, "dictionaries"):
            print_checks("dictionary scopes", dictionary_scopes(rows // 4))


if __name__ == "__main__":
    main()
