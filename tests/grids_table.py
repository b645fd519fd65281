"""Figures of the reference run with their intervals, variant by variant, as tables for docs/.

It knows the reference run and how reports rank and mark; it writes no page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import Run
from bench_runner.results.reference import PLACE, reference_runs
from bench_runner.results.statistics import Interval, is_apart, is_raw_io
from bench_runner.variants import format_name
from reports.analysis.access.uses import NO_VERDICT
from reports.analysis.columns import Column, Role
from reports.analysis.labels import short_labels
from reports.analysis.tables import Row, Table, tables, unit_of, value_text

READS_ALL, FROM_MEMORY = "†", "‡"
"""As in the reports: what reads all and selects, and what the library answered from its own memory."""
STREAMS = ("stream-save[rows=8192]", "stream-read[rows=8192]")
MARKS = {
    "=": "`=`: cannot be told from the fastest",
    NO_VERDICT: f"`{NO_VERDICT}`: under five rounds in common with the fastest, so no verdict",
    READS_ALL: f"`{READS_ALL}`: no call of its own",
    FROM_MEMORY: f"`{FROM_MEMORY}`: answered from the library's own memory",
    "±": "`±`: the larger half of the 95 % interval",
}


@dataclass(frozen=True)
class Head:
    """A column of a page's table: one figure of one table of the reference run."""

    title: str
    table: Table
    column: Column


def suite_tables(suite: str) -> list[Table]:
    """The tables of a suite in the reference run; none where it has not been measured."""
    return [each for run in _runs() if suite in run.info.suites for each in tables(run) if each.suite == suite]


def grid(heads: Sequence[Head]) -> str:
    """One row for each variant, one column for each head; the best is bold, and marks are explained below."""
    variants = [row.variant for head in heads for row in head.table.rows]
    names = short_labels(each for each in dict.fromkeys(variants) if not (is_raw_io(each) or is_apart(each)))
    units = [unit_of(head.table, head.column) for head in heads]
    titles = [f"{head.title}, {unit.name}" for head, unit in zip(heads, units, strict=True)]
    lines = [f"| | {' | '.join(titles)} |", f"|{' --- |' * (1 + len(heads))}"]
    cells = {name: [_cell(head, variant) for head in heads] for variant, name in sorted(names.items(), key=_by_format)}
    lines += [f"| {name} | {' | '.join(told)} |" for name, told in cells.items() if set(told) != {"-"}]
    seen = " ".join(text for told in cells.values() for text in told)
    notes = [text for mark, text in MARKS.items() if mark in seen]
    return "\n".join([*lines, "", f"{'; '.join(notes)}.", ""])


def _by_format(named: tuple[str, str]) -> tuple[str, int]:
    """The formats by their names, and each one's variants as they were: from the plain call to the most settings."""
    variant, _ = named
    return format_name(variant), len(variant)


def _cell(head: Head, variant: str) -> str:
    row = next((row for row in head.table.rows if row.variant == variant), None)
    interval = row.interval(head.column) if row else None
    if row is None or interval is None or row.wrong(head.column.operation):
        return "-"
    value = value_text(head.table, row, head.column, unit_of(head.table, head.column)) or "-"
    told = f"{value}{_half(interval)}{_mark(head, row)}"
    return f"**{told}**" if head.table.mark(head.column, variant) == "*" else told


def _half(interval: Interval) -> str:
    if interval.low is None or interval.high is None or not interval.median:
        return ""
    half = max(interval.high - interval.median, interval.median - interval.low) / interval.median
    return f" ±{half:.0%}" if half >= 0.005 else ""


def _mark(head: Head, row: Row) -> str:
    if row.fallback(head.column.operation):
        return READS_ALL
    if row.cached(head.column.operation):
        return FROM_MEMORY
    ratio = head.table.ranks(head.column).get(row.variant)
    if ratio is not None and ratio.tied is None:
        return NO_VERDICT
    return "=" if head.table.mark(head.column, row.variant) == "=" else ""


def _machine_of(suite: str) -> str:
    """The processor that measured a suite of the reference run."""
    return next((run.info.machine.cpu or "an unknown processor" for run in _runs() if suite in run.info.suites), "")


ENCODINGS, WRITING = "encodings", "writing"
VALUES = re.compile(r"values\[bytes=(\d+)(,kind=fixed)?\]")


def encodings(operation: str, role: Role = Role.TIME) -> str:
    """One figure of one operation over the sizes of values; those of one length stand last."""
    heads = [
        Head(_value_size(table.dataset), table, column)
        for table in suite_tables(ENCODINGS)
        for column in (table.columns.find(operation, role),)
        if column is not None
    ]
    return _told(ENCODINGS, heads)


def _value_size(dataset: str) -> str:
    found = VALUES.fullmatch(dataset)
    if found is None:
        return dataset
    size_bytes = int(found[1])
    size = f"{size_bytes // 1024} KiB" if size_bytes >= 1024 else f"{size_bytes} B"
    return f"{size} each" if found[2] else size


def writing(dataset: str) -> str:
    """Time and peak of saving and reading a table whole and batch by batch, and its size."""
    heads = [
        Head(title, table, column)
        for table in suite_tables(WRITING)
        if table.dataset == dataset
        for title, operation, role in (
            ("save", SAVE, Role.TIME),
            ("stream-save", STREAMS[0], Role.TIME),
            ("read", READ, Role.TIME),
            ("stream-read", STREAMS[1], Role.TIME),
            ("save peak", SAVE, Role.MEMORY),
            ("stream-save peak", STREAMS[0], Role.MEMORY),
            ("read peak", READ, Role.MEMORY),
            ("stream-read peak", STREAMS[1], Role.MEMORY),
            ("size", SAVE, Role.SIZE),
        )
        for column in (table.columns.find(operation, role),)
        if column is not None
    ]
    return _told(WRITING, heads)


def _told(suite: str, heads: Sequence[Head]) -> str:
    """A grid with its machine; where nothing was measured, how to."""
    if not heads:
        return f"\nThe reference run has no `{suite}` yet. `python main.py run {suite}` gives yours.\n"
    return f"\n{heads[0].table.amount}, cache warm, on {_machine_of(suite)}:\n\n{grid(heads)}"


def _runs() -> list[Run]:
    return reference_runs() if PLACE.exists() else []
