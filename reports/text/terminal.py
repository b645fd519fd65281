"""A run on the terminal: one table for each data set and set of conditions, an overview, and what to be
careful of.

A pure function of stored samples. Without a terminal it prints plain text, 100 columns wide; marks are never
told by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from bench_runner.results.records import Failure, Run
from bench_runner.results.statistics import CellSummary, Interval, is_apart, is_raw_io, overall, summarise
from reports.analysis import engines
from reports.analysis.codecs import (
    CodecEffect,
    break_even_text,
    by_format,
    codec_effects,
    frontier,
    has_codecs,
    signed_text,
)
from reports.analysis.cold_start import HEADERS, TITLE, FirstCalls, first_calls
from reports.analysis.tables import (
    COLUMNS,
    MEGABYTES,
    MILLISECONDS,
    SECONDS,
    Column,
    Row,
    Table,
    Unit,
    amount_text,
    conditions_text,
    remarks,
    short_labels,
    spread_text,
    tables,
    unit_for,
    value_text,
)

WIDTH = 100
"""Columns of the output, whatever the terminal has: a pipe has no width, and tables must not be cut."""
LEAST_LABEL_WIDTH = 12
"""What the figures must leave of them for the format."""
BLOCKS_WORTH_TELLING = 1.05
"""Blocks that exceed the bytes in them by more than this are told."""
LONG_NS = 10_000_000_000
"""From here on a time in a column of milliseconds is shown in seconds, with its unit: '29.4s'."""
_SAVE, _READ, _SIZE, _SAVE_PEAK, _READ_PEAK = COLUMNS
_NOTHING = "-"


def show(run: Run, console: Console) -> None:
    """Print a run: its tables, the overview over data sets, and remarks. Always 100 columns wide, in colour
    where `console` has colour."""
    page = page_for(console)
    summaries = summarise(run.samples)
    found = tables(run, summaries)
    print_lines(page, _head(run))
    if not found:
        print_lines(page, ["no sample was stored: nothing to show"])
    for table in found:
        page.print()
        print_lines(page, [_title(run, table)], style="bold")
        page.print(_grid(table))
        print_lines(page, notes(run, table))
        if has_codecs(table):
            page.print()
            print_lines(page, [f"{table.dataset}: what each codec adds to its format without one"], style="bold")
            page.print(_codecs(table))
            print_lines(page, codec_notes(table))
        if engines.has_calls(table):
            page.print()
            print_lines(page, [f"{table.dataset}: how much is the format, and how much is the call"], style="bold")
            page.print(_calls(table))
            print_lines(page, engines.answers(table))
    if any(map(engines.has_calls, found)):
        page.print()
        print_lines(page, [engines.EXPLANATION])
    for group in groups_of(found):
        page.print()
        names = ", ".join(table.dataset for table in group)
        where = conditions_text(group[0].conditions)
        print_lines(page, [f"over {names} ({where}): how many times the best, geometric mean"], style="bold")
        page.print(_overview(group))
    rare = first_calls(run)
    if rare:
        page.print()
        print_lines(page, [TITLE], style="bold")
        page.print(_first_calls(rare))
    if found:
        page.print()
        print_lines(page, _legend())
    for remark in remarks(run, summaries):
        remedy = f"; {remark.remedy}" if remark.remedy else ""
        print_lines(page, [f"warning: {remark.text}{remedy}"], style="yellow")


def page_for(console: Console) -> Console:
    """A console that writes to the same place, 100 columns wide: a pipe has no width, and tables must not be
    cut."""
    return Console(
        file=console.file,
        width=WIDTH,
        force_terminal=console.is_terminal,
        no_color=console.no_color,
        highlight=False,
    )


def print_lines(page: Console, lines: Iterable[str], style: str = "") -> None:
    """Print plain lines, wrapped with a hanging indent of two; brackets are no markup here."""
    for line in lines:
        for number, part in enumerate(Text(line, style=style).wrap(page, WIDTH - 2)):
            part.rstrip()
            page.print(Text("  " if number else "").append_text(part), soft_wrap=True)


def _head(run: Run) -> Iterator[str]:
    machine = _mapping(run.info.get("machine"))
    command = run.info.get("command")
    if isinstance(command, list):
        yield " ".join(map(str, command))
    facts = [
        str(machine["cpu"]) if machine.get("cpu") else "",
        f"{machine['cores']} cores" if machine.get("cores") else "",
        f"{machine['memory_bytes'] / 1e9:.0f} GB" if machine.get("memory_bytes") else "",
        f"on {machine['virtualisation']}" if machine.get("virtualisation") not in (None, "none") else "",
    ]
    described = ", ".join(fact for fact in facts if fact)
    name = str(machine.get("name", ""))
    yield f"run {run.info.get('id', run.folder.name)}" + (f" on {name} ({described})" if described else "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _title(run: Run, table: Table) -> str:
    several = len({sample.machine for sample in run.samples}) > 1
    machine = f", machine {table.machine}" if several else ""
    return f"{table.suite}: {table.dataset}, {amount_text(run, table)}, {conditions_text(table.conditions)}{machine}"


def _grid(table: Table) -> Grid:
    time = unit_for(table, "wall_ns")
    size = unit_for(table, "size_bytes")
    headers = (
        *("n", f"save\n{time.name}", "", "save\n+sync", f"read\n{time.name}", "", f"size\n{size.name}"),
        *("save\npeak MB", "read\npeak MB", "cores\ns/r", "x raw\ns/r", "fidelity"),
    )
    cells = [_values(table, row, time, size) for row in table.rows]
    label_width = label_width_of(headers, cells)
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("format", no_wrap=True)
    for header in headers[:-1]:
        grid.add_column(header, justify="right", no_wrap=True)
    grid.add_column(headers[-1], no_wrap=True)
    for row, values in zip(table.rows, cells, strict=True):
        grid.add_row(escape(folded(row.label, label_width)), *values, style=_style(row))
    return grid


def label_width_of(headers: Sequence[str], cells: Sequence[Sequence[Text | str]], padding: int = 1) -> int:
    """What the figures leave of the page for the format: figures are never cut, labels may be folded."""
    columns = zip(headers, *cells, strict=True)
    taken = sum(padding + max(len(line) for cell in column for line in str(cell).split("\n")) for column in columns)
    return max(WIDTH - padding + 1 - taken, LEAST_LABEL_WIDTH)


def folded(label: str, width: int) -> str:
    """A long label breaks before its settings and, where they are too long for a line, behind '=', ',' and '_'."""
    if len(label) <= width:
        return label
    name, bracket, settings = label.partition("[")
    lines = [name]
    for part in re.findall(r"[^=,_]+[=,_]?", bracket + settings):
        if len(lines) > 1 and len(lines[-1] + part) <= width:
            lines[-1] += part
        else:
            lines.append(f" {part}")
    return "\n".join(lines)


def _style(row: Row) -> str:
    if not row.measured:
        return "dim"
    return "dim italic" if is_raw_io(row.variant) else ""


def _values(table: Table, row: Row, time: Unit, size: Unit) -> list[Text]:
    return [
        Text(rounds_text(row)),
        _value(table, row, _SAVE, time),
        Text(_spread(row, _SAVE), "dim"),
        Text(sync_text(row, time)),
        _value(table, row, _READ, time),
        Text(_spread(row, _READ), "dim"),
        _value(table, row, _SIZE, size),
        _value(table, row, _SAVE_PEAK, MEGABYTES),
        _value(table, row, _READ_PEAK, MEGABYTES),
        Text(pair_text(row, cores_text)),
        Text(pair_text(row, multiple_text)),
        Text(fidelity_text(row)),
    ]


def rounds_text(row: Row) -> str:
    """Counted rounds: one number, or save/read where they differ."""
    numbers = [number for number in row.rounds if number]
    if not numbers:
        return _NOTHING
    return str(numbers[0]) if len(set(numbers)) == 1 else "/".join(map(str, row.rounds))


def _value(table: Table, row: Row, column: Column, unit: Unit) -> Text:
    interval = row.interval(column)
    is_long = unit is MILLISECONDS and interval is not None and interval.median >= LONG_NS
    text = value_text(table, row, column, SECONDS if is_long else unit)
    if text is None:
        return Text(_NOTHING, "dim")
    if is_long:
        text += "s"
    mark = table.mark(column, row.variant)
    seen = column.is_memory and not text.startswith("<")
    mapped = "~" if seen and row.cells[column.operation].memory_disagrees else ""
    return Text(text + mapped + mark, "bold green" if mark else "")


def _spread(row: Row, column: Column) -> str:
    interval = row.interval(column)
    return spread_text(interval) if interval else ""


def sync_text(row: Row, time: Unit) -> str:
    """The save with the sync after it, in `time`."""
    save = row.cells.get("save")
    if save is None or "sync_ns" not in save.figures or "wall_ns" not in save.figures:
        return _NOTHING
    both_ns = save.figures["wall_ns"].median + save.figures["sync_ns"].median
    return f"{SECONDS.text(both_ns)}s" if time is MILLISECONDS and both_ns >= LONG_NS else time.text(both_ns)


def cores_text(summary: CellSummary) -> str:
    """CPU time over wall time."""
    return _NOTHING if summary.cores_used is None else f"{summary.cores_used:.1f}"


def multiple_text(summary: CellSummary) -> str:
    """How many times raw I/O."""
    if summary.raw_io_multiple is None:
        return _NOTHING
    ratio = summary.raw_io_multiple.ratio
    if ratio >= 1000:
        return f"{ratio / 1000:.1f}k" if ratio < 10_000 else f"{ratio / 1000:.0f}k"
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def pair_text(row: Row, text: Callable[[CellSummary], str]) -> str:
    """`text` of save and read: '1.0/0.9'."""
    parts = [text(row.cells[operation]) if operation in row.cells else _NOTHING for operation in ("save", "read")]
    return _NOTHING if set(parts) == {_NOTHING} else "/".join(parts)


def fidelity_text(row: Row) -> str:
    """'exact' or 'lossy', else in a word why there is no verdict."""
    if row.fidelity is not None:
        return "exact" if row.fidelity == "exact" else "lossy"
    kinds = {failure.kind for failure in row.failures}
    if not kinds:
        return _NOTHING
    return "refused" if kinds == {"refused"} else "missing" if kinds == {"not installed"} else "FAILED"


def notes(run: Run, table: Table) -> Iterator[str]:
    """What must be said below a table: failures, losses, what is not counted, what is not ranked."""
    for row in table.rows:
        for failure, operations in row.failures.items():
            yield f"{row.label}: {failure_text(row, failure, operations)}"
    for row in table.rows:
        if row.losses:
            yield f"{row.label} is lossy here: {'; '.join(row.losses)}"
    unsettled = [
        f"{row.label} ({operation}, {summary.uncounted} of {summary.uncounted + summary.rounds} rounds)"
        for row in table.rows
        for operation, summary in row.cells.items()
        if summary.uncounted
    ]
    if unsettled:
        yield f"not counted (machine not at rest, read not warm, or read not passed): {', '.join(unsettled)}"
    for row in table.rows:
        blocks = _blocks(row)
        if blocks:
            yield f"{row.label}: {blocks}"
    variants = _mapping(run.info.get("variants"))
    syncing = [row.label for row in table.rows if _mapping(variants.get(row.variant)).get("syncs_on_save")]
    if syncing:
        yield f"save already syncs: {', '.join(syncing)}"
    apart = [row.label for row in table.rows if is_apart(row.variant) and row.measured]
    if apart:
        yield f"not ranked with the others, because the result is another kind of object: {', '.join(apart)}"


def _blocks(row: Row) -> str:
    """What many small files take of the disk, where that is much more than their bytes."""
    figures = row.cells["save"].figures if "save" in row.cells else {}
    names = ("files_count", "allocated_bytes", "size_bytes")
    if not all(name in figures for name in names):
        return ""
    files, allocated, size = (figures[name].median for name in names)
    if allocated <= BLOCKS_WORTH_TELLING * size:
        return ""
    return f"{files:,.0f} files of {MEGABYTES.text(size)} MB take blocks of {MEGABYTES.text(allocated)} MB on the disk"


def failure_text(row: Row, failure: Failure, operations: tuple[str, ...]) -> str:
    """A failure in words, with the operations and the rounds that it befell."""
    rounds = max(row.cells[operation].failed_rounds for operation in operations)
    some = f" in {rounds} round{'s' * (rounds > 1)}" if row.measured and failure.is_failure else ""
    where = "" if len(operations) == len(row.cells) else f"{' and '.join(operations)} "
    return f"{where}{failure.kind}{some}: {failure.reason}"


def groups_of(found: Sequence[Table]) -> list[list[Table]]:
    """The tables that differ in their data set alone, where there is more than one."""
    groups: dict[tuple[object, ...], list[Table]] = {}
    for table in found:
        groups.setdefault((table.suite, table.machine, table.conditions), []).append(table)
    return [group for group in groups.values() if len({table.dataset for table in group}) > 1]


def overall_means(group: Sequence[Table]) -> tuple[tuple[str, ...], dict[Column, Mapping[str, float]]]:
    """All ranked variants of tables that differ in their data set alone, and for each column the geometric mean of the
    ratio to the best, of the variants that every table has."""
    variants = tuple(dict.fromkeys(variant for table in group for column in COLUMNS for variant in table.ranks[column]))
    means = {}
    for column in COLUMNS:
        complete = [variant for variant in variants if all(variant in table.ranks[column] for table in group)]
        means[column] = overall(
            {v: {table.dataset: table.ranks[column][v].ratio for table in group} for v in complete}
        ).means
    return variants, means


def _overview(group: list[Table]) -> Grid:
    variants, means = overall_means(group)
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("format", overflow="fold")
    for column in COLUMNS:
        grid.add_column(column.title, justify="right", no_wrap=True)
    labels = short_labels(variants)
    for variant in sorted(variants, key=lambda name: means[_READ].get(name, float("inf"))):
        if any(variant in means[column] for column in COLUMNS):
            texts = (f"{means[c][variant]:.2f}" if variant in means[c] else _NOTHING for c in COLUMNS)
            grid.add_row(escape(labels[variant]), *texts)
    return grid


def _codecs(table: Table) -> Grid:
    """Codecs beside their formats without one; the rows on a Pareto frontier, with a codec or not, are marked."""
    time = unit_for(table, "wall_ns")
    effects = {effect.row: effect for effect in codec_effects(table)}
    fronts = {column: set(frontier(table, column)) for column in (_READ, _SAVE)}
    headers = (
        *(f"save\n{time.name}", "", f"read\n{time.name}", "", "size\nratio", "reads faster\nbelow MB/s"),
        "Pareto\nfrontier",
    )
    rows = [row for row in by_format(table) if row.measured and not is_raw_io(row.variant)]
    cells = []
    for row in rows:
        marks = " ".join(column.operation for column, front in fronts.items() if row in front)
        effect = effects.get(row)
        values = _effect(effect, time) if effect else (_NOTHING, "", _NOTHING, "", "1", "")
        cells.append((*values, marks))
    width = label_width_of(headers, cells, padding=2)
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("format", no_wrap=True)
    for header in headers[:-1]:
        grid.add_column(header, justify="right", no_wrap=True)
    grid.add_column(headers[-1], no_wrap=True)
    for row, values in zip(rows, cells, strict=True):
        grid.add_row(escape(folded(row.label, width)), *values)
    return grid


def _effect(effect: CodecEffect, time: Unit) -> tuple[str, ...]:
    ratio = _NOTHING if effect.ratio is None else f"{effect.ratio:.2f}"
    return (
        *added_text(effect.save_delta_ns, time),
        *added_text(effect.read_delta_ns, time),
        ratio,
        break_even_text(effect.break_even),
    )


def added_text(delta: Interval | None, unit: Unit) -> tuple[str, str]:
    """A difference with its sign, and the interval that it lies in."""
    if delta is None:
        return _NOTHING, ""
    low, high = delta.spread
    around = "" if delta.rounds == 1 else f"{signed_text(low, unit)} to {signed_text(high, unit)}"
    return signed_text(delta.median, unit), around


def codec_notes(table: Table) -> Iterator[str]:
    """Which codecs save nothing."""
    for effect in codec_effects(table):
        if effect.saves_nothing:
            yield f"{effect.row.label}: the codec is accepted and saves nothing (size ratio {effect.ratio:.3f})"


def _calls(table: Table) -> Grid:
    """The fastest and the slowest call of each format, for both operations."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("", *engines.HEADERS[:3]):
        grid.add_column(header, overflow="fold")
    for header in engines.HEADERS[3:]:
        grid.add_column(header, no_wrap=True)
    for column in (engines.SAVE, engines.READ):
        for place, calls in enumerate(engines.calls_of(table, column)):
            grid.add_row(column.operation if place == 0 else "", *map(escape, engines.texts(calls)))
    return grid


def _first_calls(rows: list[FirstCalls]) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("format", overflow="fold")
    for header in HEADERS:
        grid.add_column("\n".join(header.rsplit(" ", 1)), justify="right", no_wrap=True)
    for row in rows:
        grid.add_row(escape(row.label), *row.texts)
    return grid


def _legend() -> Iterator[str]:
    yield (
        "Medians of n counted rounds, by read time. ±: half of the 95 % interval; -a+b: minimum and maximum, "
        "under 5 rounds. * best, = tied with the best (the ratio paired by round holds 1); no marks under 5 "
        "rounds. s/r: save/read. cores: CPU time / time. x raw: times a plain write and read of the same "
        "buffers. Peak memory: private; ~ where it differs from the resident peak by over 5 %, because mapped "
        "file pages count in one of them."
    )
