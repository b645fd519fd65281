"""Define the words that every report uses for the rows of a table: rounds, cores, multiples of raw I/O, fidelity, and
the notes below a table.

Terminal, PDF and site call this module, so that all three use the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from bench_runner.conditions import conditions_text
from bench_runner.results.information import SAVE, MaturityInfo
from bench_runner.results.records import Failure, Run
from bench_runner.results.statistics import CellSummary
from bench_runner.variants import OperationName
from reports.analysis.columns import Column
from reports.analysis.tables import Row, Table, amount_text
from reports.analysis.units import MEGABYTES, MILLISECONDS, SECONDS, Unit

NOTHING = "-"
WHOSE_CHOICES = "choices behind these figures, and what to distrust about them: docs/limits.md"
"""A reference that every report prints. An installed package has no docs/ folder, so the page is named, not linked."""
FALLBACK = "†"
"""Marks every figure of a fallback. The library lacks a call for the operation, so a fallback does more than the
operation needs."""
FALLBACK_MEANING = (
    f"{FALLBACK} read-all: the engine has no call for this, so everything is read before selecting, or gathered before "
    "saving; not ranked"
)
CACHED = "‡"
"""Marks every time of calls that a library answered from its own memory."""
CACHED_MEANING = f"{CACHED} cached: the library answered from its own memory what it had read before; not ranked"
NOT_COUNTED = "not counted (machine busy, page cache not warm, garbage collected, or the read failed its check)"
MOST_BESIDE = 3
"""The values of up to this many operations are printed in one entry of a table, with slashes between them. More values
would be unreadable."""
BLOCKS_WORTH_TELLING = 1.05
"""The disk blocks of files may take more space than the bytes of the files. A note mentions the blocks if they take
more than this many times the bytes."""
LONG_NS = 10_000_000_000
"""A time of at least this many ns is shown in seconds with its unit ('29.4s'), even in a column of milliseconds."""


def stage_text(maturity: MaturityInfo) -> str:
    """Return the maturity of a format in one or two words: 'young', 'experimental, ours'."""
    return f"{maturity.stage}, ours" if maturity.ours else maturity.stage


def title_of(run: Run, table: Table) -> str:
    """Return the title of a table: its suite, its data and its conditions."""
    several = len({sample.machine for sample in run.samples}) > 1
    machine = f", machine {table.machine}" if several else ""
    return f"{table.suite}: {table.dataset}, {amount_text(run, table)}, {conditions_text(table.conditions)}{machine}"


def rounds_text(row: Row, operations: Sequence[OperationName]) -> str:
    """Return the counted rounds of some operations: '7', '7/6' if they differ, '3 to 7' for many operations."""
    counted = [row.cells[name].rounds for name in operations if name in row.cells]
    numbers = [number for number in counted if number]
    if not numbers:
        return NOTHING
    if len(set(numbers)) == 1:
        return str(numbers[0])
    return "/".join(map(str, counted)) if len(counted) <= MOST_BESIDE else f"{min(counted)} to {max(counted)}"


def fallback_mark(row: Row, column: Column) -> str:
    """Return the mark of a figure that is not ranked: FALLBACK if the library lacks the call, CACHED if it answered
    from its own memory. Return '' for other figures."""
    if row.fallback(column.operation):
        return FALLBACK
    return CACHED if row.cached(column.operation) else ""


def has_cached(table: Table) -> bool:
    """Return whether a figure of a table is marked as CACHED."""
    return any(row.cached(name) for row in table.rows for name in table.columns.operations)


def has_fallbacks(table: Table) -> bool:
    """Return whether a figure of a table is marked as FALLBACK."""
    return any(row.fallback(name) for row in table.rows for name in table.columns.operations)


def sync_text(row: Row, time: Unit) -> str:
    """Return the median time of a save together with the sync that follows it, in the unit `time`."""
    by_round = row.cells[SAVE].by_round if SAVE in row.cells else {}
    saves, syncs = by_round.get("wall_ns", {}), by_round.get("sync_ns", {})
    # Slow saves may have fast syncs, so the sum of two medians can be far from the time of any round.
    sums = [saves[number] + syncs[number] for number in saves.keys() & syncs.keys()]
    if not sums:
        return NOTHING
    both_ns = median(sums)
    return f"{SECONDS.text(both_ns)}s" if time is MILLISECONDS and both_ns >= LONG_NS else time.text(both_ns)


def cores_text(summary: CellSummary) -> str:
    """Return the cores used: CPU time divided by wall time."""
    return NOTHING if summary.cores_used is None else f"{summary.cores_used:.1f}"


def multiple_text(summary: CellSummary) -> str:
    """Return the time as a multiple of the time of raw I/O: '0.0416', '1.3', '42', '1.2k'."""
    if summary.raw_io_multiple is None:
        return NOTHING
    ratio = summary.raw_io_multiple.ratio
    if ratio >= 1000:
        return f"{ratio / 1000:.1f}k" if ratio < 10_000 else f"{ratio / 1000:.0f}k"
    if ratio < 1:
        return f"{ratio:#.3g}"
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def each_text(row: Row, operations: Sequence[OperationName], text: Callable[[CellSummary], str]) -> str:
    """Apply `text` to each operation and return the results separated by slashes: '1.0/0.9'."""
    parts = [text(row.cells[name]) if name in row.cells else NOTHING for name in operations]
    return NOTHING if set(parts) <= {NOTHING} else "/".join(parts)


def fidelity_text(row: Row) -> str:
    """Return 'exact' or 'lossy'. If there is no verdict, return one word for the reason.

    If a failure stopped only some operations, these operations come before the word, with a number if several have the
    same name. Operations that have no failure but were not counted are not listed.
    """
    if row.fidelity is not None:
        return "exact" if row.fidelity == "exact" else "lossy"
    failures = row.failures
    kinds = {failure.kind for failure in failures}
    if not kinds:
        return NOTHING
    why = "refused" if kinds == {"refused"} else "missing" if kinds == {"not installed"} else "FAILED"
    if not row.measured and all(summary.failures for summary in row.cells.values()):
        return why
    asked = Counter(name.name for name in row.cells)
    stopped = Counter(name.name for name, summary in row.cells.items() if summary.failures)
    named = dict.fromkeys(name.name for operations in failures.values() for name in operations)
    return f"{', '.join(_some(kind, stopped[kind], asked[kind]) for kind in named)} {why}"


def _some(kind: str, stopped: int, asked: int) -> str:
    return kind if stopped == asked else f"{stopped} of {asked} {kind}"


def why_none(row: Row, column: Column) -> str:
    """Return one word for why a row has no figure in a column."""
    summary = row.cells.get(column.operation)
    if summary is None:
        return "not run"
    return summary.failures[0].kind if summary.failures else "not counted"


def titles(run: Run, operations: Sequence[OperationName], between: str = " and ") -> str:
    """Return the titles of operations: 'save and project 10 columns'."""
    return between.join(run.info.operation(name).title for name in operations)


def failure_text(run: Run, row: Row, failure: Failure, operations: Sequence[OperationName]) -> str:
    """Return a failure as printed, with the operations and the number of rounds that it affected."""
    rounds = max(row.cells[operation].failed_rounds for operation in operations)
    some = f" in {rounds} round{'s' * (rounds > 1)}" if row.measured and failure.is_failure else ""
    if some and any(row.wrong(operation) for operation in operations):
        some += ", not ranked"
    where = "" if len(operations) == len(row.cells) else f"{titles(run, operations)} "
    return f"{where}{failure.kind}{some}: {failure.reason}"


def notes(run: Run, table: Table) -> Iterator[str]:
    """Yield the notes below a table: failures, losses, and which variants are not counted or not ranked."""
    failures: dict[str, list[str]] = {}
    for row in table.rows:
        for failure, operations in row.failures.items():
            failures.setdefault(failure_text(run, row, failure, operations), []).append(row.label)
    for text, labels in failures.items():
        yield f"{', '.join(labels)}: {text}"
    for row in table.rows:
        if row.losses:
            yield f"{row.label} is lossy here: {'; '.join(row.losses)}"
    uncounted = [
        f"{row.label} ({titles(run, [name])}, {summary.uncounted} of {summary.uncounted + summary.rounds} rounds)"
        for row in table.rows
        for name, summary in row.cells.items()
        if summary.uncounted
    ]
    if uncounted:
        yield f"{NOT_COUNTED}: {', '.join(uncounted)}"
    unranked = [
        f"{column.title} ({counted.having} of {counted.measured})"
        for column in table.columns
        if (counted := table.counted(column)).too_few and counted.having
    ]
    if unranked:
        yield f"no best is marked, because most variants have no counted figure: {', '.join(unranked)}"
    for row in table.rows:
        blocks = _blocks(row)
        if blocks:
            yield f"{row.label}: {blocks}"
    syncing = [row.label for row in table.rows if _syncs_on_save(run, row)]
    if syncing:
        yield f"save includes the sync: {', '.join(syncing)}"
    apart = [row.label for row in table.rows if row.variant.is_apart and row.measured]
    if apart:
        yield f"not ranked, because the result is a different kind of object: {', '.join(apart)}"
    if has_fallbacks(table):
        yield FALLBACK_MEANING
    if has_cached(table):
        yield CACHED_MEANING


def _syncs_on_save(run: Run, row: Row) -> bool:
    about = run.info.variants.get(row.variant)
    return about is not None and about.syncs_on_save


def _blocks(row: Row) -> str:
    """Return a sentence about the disk space of a row's files, or '' if this space is hardly more than the bytes of the
    files. Many small files take much more space on the disk than they have bytes."""
    figures = row.cells[SAVE].figures if SAVE in row.cells else {}
    names = ("files_count", "allocated_bytes", "size_bytes")
    if not all(name in figures for name in names):
        return ""
    files, allocated, size = (figures[name].median for name in names)
    if allocated <= BLOCKS_WORTH_TELLING * size:
        return ""
    return f"{files:,.0f} files of {MEGABYTES.text(size)} MB take blocks of {MEGABYTES.text(allocated)} MB on the disk"
