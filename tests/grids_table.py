"""Figures of the reference run with their intervals, variant by variant, as tables for docs/.

It knows the reference run and how reports rank and mark; it writes no page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.networks import network_text
from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import Run
from bench_runner.results.statistics import FEWEST_ROUNDS, Interval, summarise
from bench_runner.suites.document_questions import NAMES
from bench_runner.variants import Variant
from reports.analysis.access.loaders import WHOLE, has_loaders, loaders_of
from reports.analysis.access.roofline import SHARES, roofline_of
from reports.analysis.access.uses import NO_VERDICT
from reports.analysis.columns import Column, Role
from reports.analysis.labels import short_labels
from reports.analysis.near_storage.break_even import break_evens, sentences
from reports.analysis.near_storage.ways import network_place
from reports.analysis.tables import Row, Table, tables, unit_of, value_text
from reports.analysis.units import spread_text
from tests import reference_tables
from tests.reference_tables import tables_of

READS_ALL, FROM_MEMORY = "†", "‡"
"""As in the reports: what reads all and selects, and what the library answered from its own memory."""
STREAMS = ("stream-save[rows=8192]", "stream-read[rows=8192]")
LESS, FEW = "<", "n="
MARKS = {
    "**": "**bold**: the best of its column",
    "=": "`=`: cannot be told from the fastest",
    NO_VERDICT: f"`{NO_VERDICT}`: under five rounds in common with the fastest, so no verdict",
    READS_ALL: f"`{READS_ALL}`: no call of its own",
    FROM_MEMORY: f"`{FROM_MEMORY}`: answered from the library's own memory",
    LESS: f"`{LESS}`: less than can be told",
    "±": "`±`: the larger half of the 95 % interval",
    FEW: "`n=`: of so few rounds, so the spread is of the smallest and the largest value, and there is no verdict",
}


@dataclass(frozen=True)
class Head:
    """A column of a page's table: one figure of one table of the reference run."""

    title: str
    table: Table
    column: Column


def suite_tables(suite: str, *, cold: bool = False) -> list[Table]:
    """The tables of a suite in the reference run, warm or cold; none where it has not been measured."""
    return [table for _, table in _with_runs(suite, cold=cold)]


def _with_runs(suite: str, *, cold: bool) -> Iterator[tuple[Run, Table]]:
    for run in _runs():
        for each in tables_of(run) if suite in run.info.suites else ():
            if each.suite == suite and (each.conditions.cache != "warm") is cold:
                yield run, each


def grid(heads: Sequence[Head], named: Callable[[Iterable[Variant]], Mapping[Variant, str]] = short_labels) -> str:
    """One row for each variant, one column for each head; the best is bold, and marks are explained below. `named`
    gives variants their names."""
    variants = [row.variant for head in heads for row in head.table.rows]
    names = named(each for each in dict.fromkeys(variants) if not (each.is_raw_io or each.is_apart))
    units = [unit_of(head.table, head.column) for head in heads]
    titles = [f"{head.title}, {unit.name}" for head, unit in zip(heads, units, strict=True)]
    lines = [f"| | {' | '.join(titles)} |", f"|{' --- |' * (1 + len(heads))}"]
    ordered = sorted(names.items(), key=_by_format)
    rounds = sorted({number for variant, _ in ordered for number in _rounds(heads, variant)})
    few = rounds[0] if len(rounds) == 1 and rounds[0] < FEWEST_ROUNDS else None
    seen = ""
    for variant, name in ordered:
        own = _rounds(heads, variant)
        # What all figures of a line share is told once.
        shared = len(own) == 1 and max(own) < FEWEST_ROUNDS
        cells = [_cell(head, variant, alone=shared) for head in heads]
        told = f" ({FEW}{max(own)})" if shared and few is None else ""
        if set(cells) != {"-"}:
            lines.append(f"| {name}{told} | {' | '.join(cells)} |")
            seen += f"{told} {' '.join(cells)}"
    marks = seen.replace(FEW, "")
    notes = [text for mark, text in MARKS.items() if mark in (seen if mark == FEW else marks)]
    enough = [number for number in rounds if number >= FEWEST_ROUNDS]
    if few is not None:
        spread = "" if few == 1 else ", with the smallest and the largest value"
        notes.append(f"Figures of {few} round{'s' * (few > 1)} each{spread}: no verdicts")
    elif enough:
        notes.append(f"{'Others are' if enough != rounds else 'Figures'} of {_from_to(enough)} rounds")
    return "\n".join([*lines, "", " ".join(f"{each}." for each in notes), ""])


def _rounds(heads: Iterable[Head], variant: str) -> set[int]:
    """Of how many rounds the figures of a line are."""
    shown = [(head.column, row) for head in heads for row in head.table.rows if row.variant == variant]
    found = [row.interval(column) for column, row in shown if not row.wrong(column.operation)]
    return {interval.rounds for interval in found if interval is not None}


def _from_to(numbers: Sequence[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"


def _by_format(named: tuple[Variant, str]) -> tuple[str, int]:
    """The formats by their names, and each one's variants as they were: from the plain call to the most settings."""
    variant, _ = named
    return variant.format_name, len(variant)


def _cell(head: Head, variant: str, *, alone: bool = False) -> str:
    """A figure with its spread and marks; of how many rounds it is, where these are few and not told `alone`."""
    row = next((row for row in head.table.rows if row.variant == variant), None)
    interval = row.interval(head.column) if row else None
    if row is None or interval is None or row.wrong(head.column.operation):
        return "-"
    value = value_text(head.table, row, head.column, unit_of(head.table, head.column)) or "-"
    half = "" if value.startswith(LESS) else _spread(interval)
    if interval.rounds < FEWEST_ROUNDS:
        return f"{value}{_own(head, row)}{half}{'' if alone else f' {FEW}{interval.rounds}'}"
    told = f"{value}{half}{_mark(head, row)}"
    if head.table.mark(head.column, variant) != "*":
        return told
    # Which of several that are less than can be told is the least, nobody knows.
    return f"{told}=" if value.startswith(LESS) else f"**{told}**"


def _spread(interval: Interval) -> str:
    """The larger half of the interval; under five rounds the smallest and the largest value."""
    if not interval.median:
        return ""
    if interval.low is None or interval.high is None:
        return f" {spread_text(interval)}" if interval.maximum > interval.minimum else ""
    half = max(interval.high - interval.median, interval.median - interval.low) / interval.median
    return f" ±{half:.0%}" if half >= 0.005 else ""


def _own(head: Head, row: Row) -> str:
    """What a figure says of itself, whatever others are."""
    if row.fallback(head.column.operation):
        return READS_ALL
    return FROM_MEMORY if row.cached(head.column.operation) else ""


def _mark(head: Head, row: Row) -> str:
    own = _own(head, row)
    # Nothing is ranked by what stands beside the time.
    if own or head.column not in head.table.columns.shown:
        return own
    ratio = head.table.ranks(head.column).get(row.variant)
    if ratio is not None and ratio.tied is None:
        return NO_VERDICT
    return "=" if head.table.mark(head.column, row.variant) == "=" else ""


def _machine_of(suite: str) -> str:
    """The processor that measured a suite of the reference run."""
    return next((run.info.machine.cpu or "an unknown processor" for run in _runs() if suite in run.info.suites), "")


ENCODINGS, WRITING, WIDE, NEAR_STORAGE, DOCUMENTS = "encodings", "writing", "wide", "near-storage", "documents"
QUERIES = re.compile(r"query\[groups=([\d.]+)\]")
TITLES = {
    "save": "ingest",
    "get[documents=100]": "get 100",
    "fields[paths=2]": "2 fields of all",
    "range[selectivity=0.001,paths=1,by=scan]": "0.1 % by scan",
    "range[selectivity=0.001,paths=1,by=index]": "0.1 % by index",
    "ingest[updates=0.5,indexes=none]": "half updates",
    "ingest[updates=0.5,indexes=2]": "with 2 indexes",
    **{f"ask[query={name}]": f"question {name.removeprefix('q')}" for name in NAMES},
}
"""What pages call the operations on documents."""
WAITS = {"first batch ms": 4, "p99 gap ms": 5}
"""What a training loop waits for, by its place among the texts of a loader."""
_NOT_MEASURED = "The reference run has no `{0}` yet. `python main.py run {0}` gives yours.\n"
COLUMNS = re.compile(r"wide\[columns=(\d+),rows=(\d+)\]")
VALUES = re.compile(r"values\[bytes=(\d+)(,kind=fixed)?\]")


def encodings(operation: str, role: Role = Role.TIME, *, cold: bool = False) -> str:
    """One figure of one operation over the sizes of values; those of one length stand last."""
    heads = [
        Head(_value_size(table.dataset), table, column)
        for table in suite_tables(ENCODINGS, cold=cold)
        for column in (table.columns.find(operation, role),)
        if column is not None
    ]
    return _told(ENCODINGS, heads)


def roofline() -> str:
    """Which share of what the device gives each variant reaches of each size of values, and what it gives."""
    found = [(run, table, list(roofline_of(run, table))) for run, table in _with_runs(ENCODINGS, cold=True)]
    if not found:
        return f"\n{_NOT_MEASURED.format('encodings --cache cold')}"
    shares: dict[tuple[str, str], dict[str, str]] = {}
    for _, table, figures in found:
        for each in figures:
            for label, texts in each.lines if each.title == SHARES else ():
                for title, text in zip(each.headers, texts, strict=True):
                    shares.setdefault((title, _value_size(table.dataset)), {})[label] = text
    heads = sorted(shares, key=lambda head: list(dict.fromkeys(title for title, _ in shares)).index(head[0]))
    labels = dict.fromkeys(label for texts in shares.values() for label in texts)
    lines = [f"| | {' | '.join(f'{title}, {size}' for title, size in heads)} |", f"|{' --- |' * (1 + len(heads))}"]
    lines += [f"| {each} | {' | '.join(shares[head].get(each, '-') for head in heads)} |" for each in labels]
    run, table, figures = found[-1]
    given, *_ = figures
    about = f"{given.title[0].upper()}{given.title[1:]}, from the copy of values of {_value_size(table.dataset)}, on"
    lines += ["", f"{about} {run.info.machine.cpu}:", "", f"| | {' | '.join(given.headers)} |"]
    lines += [f"|{' --- |' * (1 + len(given.headers))}"]
    lines += [f"| {label} | {' | '.join(texts)} |" for label, texts in given.lines]
    return "\n".join(["", *lines, ""])


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


def wide(operation: str, rows: int, figure: str = Role.TIME.figure) -> str:
    """One figure of one operation over the number of columns, of tables with so many rows."""
    heads = []
    for table in suite_tables(WIDE):
        shape, column = COLUMNS.fullmatch(table.dataset), table.columns.find(operation, Role.TIME)
        if shape is not None and int(shape[2]) == rows and column is not None:
            heads.append(Head(f"{int(shape[1]):,} columns", table, replace(column, figure=figure)))
    return _told(WIDE, heads)


def training(suite: str) -> str:
    """Rows a second in each order, for each data set of a suite of training loops; waits of the most shuffled."""
    told = []
    for run in _runs():
        for table in tables_of(run):
            if table.suite == suite and has_loaders(table):
                told += [f"`{table.dataset}`, {table.amount}, on {run.info.machine.cpu}:", "", _orders(run, table)]
    return "\n" + "\n".join(told or [_NOT_MEASURED.format(suite)])


def _orders(run: Run, table: Table) -> str:
    orders = list(loaders_of(run, table))
    rounds = {
        (run.info.operation(name).title, row.label): cell.rounds
        for row in table.rows
        for name, cell in row.cells.items()
    }
    titles = [f"{order.title.rpartition(', ')[2]}, rows/s" for order in orders]
    lines = [f"| | {' | '.join([*titles, *WAITS])} |", f"|{' --- |' * (1 + len(titles) + len(WAITS))}"]
    for name in dict.fromkeys(label for order in orders for label, _ in order.lines):
        found = [dict(order.lines).get(name) for order in orders]
        cells = [
            _rate(texts, rounds[order.title, name]) if texts else "-"
            for order, texts in zip(orders, found, strict=True)
        ]
        waits = [found[0][place] if found[0] else "-" for place in WAITS.values()]
        lines.append(f"| {name} | {' | '.join([*cells, *waits])} |")
    return "\n".join([*lines, ""])


def _rate(texts: Sequence[str], rounds: int) -> str:
    """Rows a second with their spread; of an epoch that was ended, how much of it was read."""
    rate, spread, share = texts[0], texts[1], texts[-1]
    few = f"{FEW}{rounds}" if rounds < FEWEST_ROUNDS else ""
    return " ".join(filter(None, [rate, spread, few, "" if share == WHOLE else f"of {share}"]))


def near_storage(part: str) -> str:
    """What queries take by the share of row groups that they read, in a part of the reference run: a grid for each
    network, and from when it pays. A part of several networks leaves the one process to the part that has it alone."""
    told = []
    for run in (each for each in _runs() if each.folder.name == part):
        summaries = summarise(run.samples)
        found = [table for table in tables(run, summaries) if table.suite == NEAR_STORAGE]
        found = [table for table in found if table.conditions.network] or found
        for table in sorted(found, key=lambda each: network_place(each.conditions.network)):
            heads = [
                Head(f"{_percent(column.operation)} %", table, column)
                for column in table.columns.times
                if QUERIES.fullmatch(column.operation)
            ]
            about = f"`{table.dataset}`, {table.amount}, {network_text(table.conditions.network)}"
            told += [f"{about}, on {run.info.machine.cpu}:", "", grid(heads)]
        told += [f"- {each[0].upper()}{each[1:]}." for each in sentences(break_evens(summaries))] if found else []
    return "\n" + "\n".join([*told, ""] if told else [_NOT_MEASURED.format(NEAR_STORAGE)])


def _percent(operation: str) -> str:
    found = QUERIES.fullmatch(operation)
    return f"{100 * float(found[1]):g}" if found else operation


def documents(dataset: str, part: str = DOCUMENTS) -> str:
    """What each store takes for one data set, in a part of the reference run: size, ingestion, look-ups, questions."""
    tables_of_set = [each for run, each in _with_runs(DOCUMENTS, cold=False) if run.folder.name == part]
    heads = [
        Head(title, table, column)
        for table in tables_of_set
        if table.dataset == dataset
        for title, operation, role in (
            ("size", SAVE, Role.SIZE),
            *((TITLES.get(each, each), each, Role.TIME) for each in table.columns.operations),
        )
        for column in (table.columns.find(operation, role),)
        if column is not None
    ]
    return _told(DOCUMENTS, heads)


def _told(suite: str, heads: Sequence[Head]) -> str:
    """A grid with its machine; where nothing was measured, how to."""
    if not heads:
        return f"\n{_NOT_MEASURED.format(suite)}"
    tables_of = sorted({head.table for head in heads}, key=lambda table: table.data_rows)
    least, most = tables_of[0], tables_of[-1]
    amount = most.amount if least.data_rows == most.data_rows else f"{least.data_rows:,} to {most.amount}"
    return f"\n{amount}, cache {most.conditions.cache}, on {_machine_of(suite)}:\n\n{grid(heads)}"


def _runs() -> list[Run]:
    return list(reference_tables.runs())
