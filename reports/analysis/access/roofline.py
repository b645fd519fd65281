"""Compare measured rates with the device's limits, and the bytes read with the bytes returned.

For takes, scans and reads of a table, show the rate as a share of the device's limit, which was measured during the
run. Also show the bytes read for each byte of the result.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.information import CACHED, CACHED_SEQUENTIAL, RANDOM, SEQUENTIAL, RooflineInfo, RooflineLine
from bench_runner.results.records import Run
from bench_runner.results.statistics import CellSummary
from bench_runner.variants import OperationName, Variant
from reports.analysis.figures import Figures
from reports.analysis.tables import Row, Table
from reports.analysis.units import number_text
from reports.analysis.words import CACHED as FROM_LIBRARY
from reports.analysis.words import FALLBACK, NOTHING

SMALL_BYTES = 4_096
"""Size of the smallest read from a device. Even a row of fewer bytes takes one read of this size."""
CHANGED = 0.2
"""If the rate of a device changed by more than this share between the start and the end of the run, a note names the
device."""
_THOUSANDS = 100_000
"""Reads per second from this number on are shown in thousands."""
RESULT, LOGICAL, DEVICE, DISTINCT = "result_bytes", "asked_bytes", "device_read_bytes", "distinct_bytes"
SHARES = "share of the roofline"
"""Title of the figures that show rates as a share of the device's limit."""
PARTS = ("take", "scan")
"""A table has this section only if it has one of these operations. The section then also shows full reads and reads of
columns."""


@dataclass(frozen=True)
class Limit:
    """The highest rate per second that was measured, of reads, rows or bytes. With `at_least`, the device may be faster
    than this."""

    per_second: float
    at_least: bool

    def share(self, per_second: float) -> str:
        """Return a rate as a share of this limit: '12%', '3.4%', or '≤12%' if the device may be faster."""
        share = per_second / self.per_second
        return f"{'≤' if self.at_least else ''}{share * 100:.{1 if share < 0.1 else 0}f}%"


def has_roofline(table: Table) -> bool:
    """Return whether a table has takes or scans with known bytes read and returned."""
    return any(
        {RESULT, LOGICAL} <= cell.figures.keys()
        for row in table.rows
        for name, cell in row.cells.items()
        if name.name in PARTS
    )


def roofline_of(run: Run, table: Table) -> Iterator[Figures]:
    """Yield up to three `Figures`: the device's limits, the measured rates as a share of these limits, and the bytes
    read. The first two are left out if the run did not measure the device."""
    probes = [each for each in run.info.rooflines if _is_under(each, table)]
    found = [each for each in probes if each.lines]
    if probes:
        yield _device(run, table, probes)
    operations = _reading(table)
    if found:
        shares = {name: _shares(table, name, found) for name in operations}
        if any(shares.values()):
            yield _grid(run, table, SHARES, shares, _share_notes(table))
    yield _grid(
        run,
        table,
        "bytes read for each byte of the result",
        {name: _amplifications(run, table, name) for name in operations},
        _amplification_notes(run, table),
    )


def _is_under(probe: RooflineInfo, table: Table) -> bool:
    return (probe.dataset, probe.work_dir) == (table.dataset, table.conditions.work_dir)


def _is_cold(table: Table) -> bool:
    return table.conditions.cache != "warm"


def _reading(table: Table) -> list[OperationName]:
    """Return the operations with known bytes read and returned."""
    return [
        name
        for name in table.columns.operations
        if any({RESULT, LOGICAL} <= row.cells[name].figures.keys() for row in table.rows if name in row.cells)
    ]


def _grid(
    run: Run, table: Table, title: str, columns: Mapping[OperationName, Mapping[Variant, str]], notes: Iterable[str]
) -> Figures:
    """Return `Figures` from `columns`, which has the printed value of each variant by operation."""
    shown = {name: texts for name, texts in columns.items() if texts}
    lines = tuple(
        (row.label, tuple(texts.get(row.variant, NOTHING) for texts in shown.values()))
        for row in table.rows
        if any(row.variant in texts for texts in shown.values())
    )
    headers = tuple(run.info.operation(name).title for name in shown)
    return Figures(title, "format", headers, lines, tuple(notes))


def _marked(row: Row, operation: OperationName, text: str) -> str:
    return text + (FALLBACK if row.fallback(operation) else FROM_LIBRARY if row.cached(operation) else "")


# --- what the device gives ------------------------------------------------------------------------------------------


def _device(run: Run, table: Table, probes: Sequence[RooflineInfo]) -> Figures:
    places = dict.fromkeys((line.kind, line.size_bytes) for each in probes for line in each.lines)
    depths = sorted({line.depth for each in probes for line in each.lines})
    lines = tuple((_line_title(*place), tuple(_given(probes, *place, depth) for depth in depths)) for place in places)
    headers = tuple(f"depth {depth}" for depth in depths)
    return Figures("limits of the device", "reads", headers, lines, tuple(_device_notes(run, table, probes)))


def _line_title(kind: str, size_bytes: int) -> str:
    size = f"{size_bytes // 2**20} MiB" if size_bytes >= 2**20 else f"{size_bytes // 2**10} KiB"
    where = ", cached" if kind in (CACHED, CACHED_SEQUENTIAL) else ""
    in_order = kind in (SEQUENTIAL, CACHED_SEQUENTIAL)
    return f"{size} {'in order' if in_order else 'random'}{where} {'MB/s' if in_order else '1/s'}"


def _given(probes: Sequence[RooflineInfo], kind: str, size_bytes: int, depth: int) -> str:
    """Return the device's rate before and after the rounds: '8,512 / 8,730'."""
    texts = []
    for probe in probes:
        for line in probe.lines:
            if (line.kind, line.size_bytes, line.depth) == (kind, size_bytes, depth):
                in_order = kind in (SEQUENTIAL, CACHED_SEQUENTIAL)
                value = line.bytes_per_second / 1e6 if in_order else line.per_second
                text = f"{value / 1_000:,.0f}k" if value >= _THOUSANDS else number_text(value)
                texts.append(("≥" if line.at_least else "") + text)
    return " / ".join(texts) or NOTHING


def _device_notes(run: Run, table: Table, probes: Sequence[RooflineInfo]) -> Iterator[str]:
    for probe in probes:
        if probe.why_none:
            yield f"no limits of the device {probe.when} the rounds: {probe.why_none}"
    found = [each for each in probes if each.lines]
    if not found:
        return
    copy_mb = number_text(found[0].copy_bytes / 1e6)
    looks = " / ".join(each.when for each in found)
    yield (
        f"Direct reads of raw I/O's copy of {copy_mb} MB, past the page cache ({looks} the rounds). Depth: reads at a "
        "time; 1/s: reads per second; cached: one thread reads the same file from the page cache"
    )
    if any(each.guest for each in found):
        yield "guest: figures of this virtual machine, including caches and limits of its host"
    if any(line.at_least for each in found for line in each.lines):
        yield "≥: the CPU core limited the probe, so the device may be faster, and shares of it are upper limits (≤)"
    if not all(each.compiled for each in found):
        yield "the compiled probe was not built here; Python issued the reads, which is slower on fast devices"
    folder = run.info.work_dirs.get(table.conditions.work_dir)
    if folder is not None and folder.read_ahead_kb is not None:
        yield f"kernel read-ahead: up to {folder.read_ahead_kb:,} KiB where a file is read in order or mapped"
    yield from _changes(found)


def _changes(found: Sequence[RooflineInfo]) -> Iterator[str]:
    if len(found) < 2:
        return
    first, last = (
        [line.per_second for line in each.lines if (line.kind, line.size_bytes, line.depth) == (RANDOM, SMALL_BYTES, 1)]
        for each in (found[0], found[-1])
    )
    if first and last and abs(last[0] / first[0] - 1) > CHANGED:
        change = last[0] / first[0] - 1
        yield f"the device served {abs(change):.0%} {'more' if change > 0 else 'fewer'} single reads after the rounds"


# --- shares ---------------------------------------------------------------------------------------------------------


def _shares(table: Table, operation: OperationName, probes: Sequence[RooflineInfo]) -> dict[Variant, str]:
    settings = operation.parameters
    lines = [line for probe in probes for line in probe.lines]
    limits: list[Limit | None]
    of_cell: Callable[[CellSummary], float | None]
    if operation.name == "take":
        # Neighbouring and repeated rows share reads, so the number of reads that a device needs is unknown.
        if settings.get("pattern", "uniform") != "uniform":
            return {}
        rows = int(settings["rows"])
        row_bytes = (_result_bytes(table, operation) or 0) / rows
        limits = _row_limits(lines, row_bytes, int(settings.get("streams", 1)), cold=_is_cold(table))

        def of_cell(cell: CellSummary) -> float | None:
            return _per_second(cell, lambda figures: rows)
    else:
        moved = DEVICE if _is_cold(table) else LOGICAL
        limits = _byte_limits(lines, cold=_is_cold(table))

        def of_cell(cell: CellSummary) -> float | None:
            return _per_second(cell, lambda figures: figures[moved]) if moved in cell.figures else None

    found = {}
    for row in table.rows:
        per_second = of_cell(row.cells[operation]) if operation in row.cells else None
        if per_second is not None:
            texts = [NOTHING if limit is None else limit.share(per_second) for limit in limits]
            found[row.variant] = _marked(row, operation, "/".join(texts))
    return found


def _per_second(cell: CellSummary, amount: Callable[[Mapping[str, int]], float]) -> float | None:
    """Return the median over rounds of the amount that a call handles per second."""
    rounds = cell.by_round.get("wall_ns", {})
    by_round = cell.by_round.items()
    figures = [{name: values[number] for name, values in by_round if number in values} for number in rounds]
    rates = [amount(each) / each["wall_ns"] * 1e9 for each in figures if each["wall_ns"]]
    return statistics.median(rates) if rates else None


def _row_limits(lines: Sequence[RooflineLine], row_bytes: float, streams: int, *, cold: bool) -> list[Limit | None]:
    """Return the limits of rows per second. For a device, there are two limits: at the queue depth of the calls, and at
    the best queue depth. For the page cache, there is only one."""
    if not cold:
        return [_row_limit(lines, (CACHED,), (CACHED, CACHED_SEQUENTIAL), row_bytes, None)]
    return [_row_limit(lines, (RANDOM,), (RANDOM, SEQUENTIAL), row_bytes, depth) for depth in (streams, None)]


def _row_limit(
    lines: Sequence[RooflineLine], single: Sequence[str], together: Sequence[str], row_bytes: float, depth: int | None
) -> Limit | None:
    """Return the most rows per second that a device can give. There are two limits, by the number of reads (at least
    one for each row) and by the bytes of the rows. The lower limit applies."""
    reads = _most(lines, single, depth, lambda line: line.per_second, SMALL_BYTES)
    moved = _most(lines, together, depth, lambda line: line.bytes_per_second)
    if reads is None or moved is None:
        return None
    by_bytes = Limit(moved.per_second / max(row_bytes, 1), moved.at_least)
    return min(reads, by_bytes, key=lambda limit: limit.per_second)


def _byte_limits(lines: Sequence[RooflineLine], *, cold: bool) -> list[Limit | None]:
    """Return the limits of bytes per second of sequential reads. For a device, there are two limits: with one read at a
    time, and at the best queue depth. For the page cache, there is only one."""
    if not cold:
        return [_most(lines, (CACHED_SEQUENTIAL,), None, lambda line: line.bytes_per_second)]
    return [_most(lines, (SEQUENTIAL,), depth, lambda line: line.bytes_per_second) for depth in (1, None)]


def _most(
    lines: Sequence[RooflineLine],
    kinds: Sequence[str],
    depth: int | None,
    value: Callable[[RooflineLine], float],
    size_bytes: int | None = None,
) -> Limit | None:
    """Return the highest value among the measured limits of these kinds. With `depth=None` or `size_bytes=None`, limits
    of any depth or size are used."""
    found = [
        line
        for line in lines
        if line.kind in kinds and depth in (None, line.depth) and size_bytes in (None, line.size_bytes)
        if line.per_second
    ]
    if not found:
        return None
    best = max(found, key=value)
    return Limit(value(best), best.at_least)


def _share_notes(table: Table) -> Iterator[str]:
    if _is_cold(table):
        yield (
            "at the depth of the calls / at the best depth. Take: rows per second, relative to 4 KiB reads of the "
            "device (one for each row, whatever its columns) or to its bytes if rows are larger. Other operations: "
            "bytes per second from the device, relative to 1 MiB reads in order. Over 100%: a call has several reads "
            "in flight, or one read covers several rows"
        )
    else:
        yield (
            "relative to one thread that reads the page cache with preadv. Take: rows per second, relative to 4 KiB "
            "reads (one for each row, whatever its columns) or to bytes if rows are larger. Other operations: bytes "
            "per second that read calls returned, relative to 1 MiB reads in order"
        )


# --- bytes read for each byte of the result -----------------------------------------------------------------------


def _result_bytes(table: Table, operation: OperationName) -> float | None:
    """Return the size in bytes of an operation's result. The result of raw I/O is used, because it has only the
    requested values. Without raw I/O, the smallest result of all variants is used."""
    given = {
        row.variant: row.cells[operation].figures[RESULT].median
        for row in table.rows
        if operation in row.cells and RESULT in row.cells[operation].figures
    }
    return next((value for variant, value in given.items() if variant.is_raw_io), min(given.values(), default=None))


def _amplifications(run: Run, table: Table, operation: OperationName) -> dict[Variant, str]:
    given = _result_bytes(table, operation)
    if not given:
        return {}
    found = {}
    for row in table.rows:
        figures = row.cells[operation].figures if operation in row.cells else {}
        if LOGICAL not in figures:
            continue
        texts = [NOTHING if _is_blind(run, row) else number_text(figures[LOGICAL].median / given)]
        if _is_cold(table):
            # Distinct pages are counted over all calls of a sample. With concurrent streams, even a cold sample has
            # several calls.
            calls = figures["repetitions"].median if "repetitions" in figures else 1
            texts += [
                number_text(figures[name].median / given / over) if name in figures else NOTHING
                for name, over in ((DEVICE, 1), (DISTINCT, calls))
            ]
        found[row.variant] = _marked(row, operation, "/".join(texts))
    return found


def _is_blind(run: Run, row: Row) -> bool:
    about = run.info.variants.get(row.variant)
    return about is not None and (about.mapped or about.reads_unseen)


def _amplification_notes(run: Run, table: Table) -> Iterator[str]:
    told = "returned by read calls, cached or not"
    if _is_cold(table):
        told += " / fetched from the device / distinct pages of the stored copy that were fetched, including opening"
    yield f"{told}; opening a copy that stays open is not included. Under 1: encoded or compressed"
    blind = [row.label for row in table.rows if row.measured and _is_blind(run, row)]
    if blind:
        unseen = "it reads through mappings or io_uring, which bypass the counters"
        yield f"no figure for read calls, because {unseen}: {', '.join(blind)}"
