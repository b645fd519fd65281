"""Print a run on the terminal: the sections of each table, then the sections of the whole run.

Without a terminal, the output is plain text. No mark depends on colour alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Run
from reports.analysis import engines
from reports.analysis.access.uses import USES_MEANING, uses_of
from reports.analysis.codecs import (
    CodecEffect,
    added_text,
    break_even_text,
    by_format,
    codec_effects,
    codec_notes,
    frontier,
)
from reports.analysis.columns import READ_TIME, SAVE_TIME
from reports.analysis.labels import short_labels
from reports.analysis.machines import TITLE as TITLE_OF_MACHINES
from reports.analysis.machines import machines_of
from reports.analysis.means import Means
from reports.analysis.repeat_command import command_text
from reports.analysis.sections import TITLES, Contents, Elsewhere, sections_of, sections_of_run
from reports.analysis.tables import Table, unit_for
from reports.analysis.units import Unit
from reports.analysis.words import NOTHING, WHOSE_CHOICES, notes, title_of, titles
from reports.text.figures import show_figures
from reports.text.lines import show_lines, show_throughput
from reports.text.operations import further_grids, initials, main_grid
from reports.text.page import labelled_grid, new_grid, page_for, print_lines

_HEADER_WIDTH = 13
"""Column titles are wrapped at this many characters."""
_MOST_MEANS = 5
"""Number of columns that fit next to each other in a grid of means of operations other than save and read."""


def show(run: Run, console: Console) -> None:
    """Print a run: its tables, the means over data sets, and remarks. The output is always 100 columns wide, and in
    colour if `console` has colour."""
    page, contents = page_for(console), Contents(run)
    print_lines(page, _head(run))
    if not contents.tables:
        print_lines(page, ["This run has no samples, so there is nothing to show."])
    for table in contents.tables:
        for section in sections_of(table):
            if section.figures is not None:
                show_figures(page, f"{table.dataset}: {section.title}", section.figures(run, table))
            elif not isinstance(of_table := OF_TABLE[section.name], Elsewhere):
                of_table(page, contents, table)
    if any(map(engines.has_calls, contents.tables)):
        page.print()
        print_lines(page, [engines.EXPLANATION])
    for of_whole in sections_of_run(contents):
        if of_whole.figures is not None:
            show_figures(page, of_whole.title, of_whole.figures(contents))
        elif not isinstance(of_run := OF_RUN[of_whole.name], Elsewhere):
            of_run(page, contents)


def show_machines(runs: Sequence[Run], console: Console) -> None:
    """Print the figures that several machines have in common next to each other. Print nothing if there are none."""
    found = list(machines_of((run, table) for run in runs for table in Contents(run).tables))
    if found:
        show_figures(page_for(console), TITLE_OF_MACHINES, found)


def _head(run: Run) -> Iterator[str]:
    info, machine = run.info, run.info.machine
    if info.command:
        yield command_text(info.command)
    facts = [
        machine.cpu or "",
        f"{machine.cores} cores" if machine.cores else "",
        f"{machine.memory_bytes / 1e9:.0f} GB" if machine.memory_bytes else "",
        f"on {machine.virtualisation}" if machine.is_virtual else "",
    ]
    described = ", ".join(fact for fact in facts if fact)
    yield f"run {info.id or run.folder.name}" + (f" on {machine.name} ({described})" if described else "")


# --- of a table ---------------------------------------------------------------------------------------------------


def _tables(page: Console, contents: Contents, table: Table) -> None:
    page.print()
    print_lines(page, [title_of(contents.run, table)], style="bold")
    page.print(main_grid(contents.run, table))
    if not table.columns.listed:
        print_lines(page, notes(contents.run, table))


def _further_operations(page: Console, contents: Contents, table: Table) -> None:
    """Print the operations other than save and read. The notes of the table follow the last grid."""
    page.print()
    print_lines(page, [f"{table.dataset}: {TITLES['further operations']}"], style="bold")
    for grid in further_grids(contents.run, table):
        page.print(grid)
    print_lines(page, notes(contents.run, table))


def _uses(page: Console, contents: Contents, table: Table) -> None:
    """Print for each operation the fastest variants whose library has a call for it. A fallback, which reads or writes
    everything instead, is added if it is faster than all these variants."""
    page.print()
    print_lines(page, [f"{table.dataset}: {TITLES['uses']}"], style="bold")
    grid = new_grid()
    for header in ("use", "fastest"):
        grid.add_column(header, overflow="fold", max_width=34)
    grid.add_column("tied with it (=), or times as long", overflow="fold")
    for use in uses_of(contents.run, table):
        grid.add_row(escape(use.title), escape(use.best), escape(use.others))
    page.print(grid)
    print_lines(page, [USES_MEANING])


def _codecs(page: Console, contents: Contents, table: Table) -> None:
    """Print codecs next to the same formats without a codec. Mark the rows on a Pareto frontier, that is rows that no
    other row beats in both size and time."""
    page.print()
    print_lines(page, [f"{table.dataset}: {TITLES['codecs']}"], style="bold")
    time = unit_for(table, "wall_ns")
    effects = {effect.row: effect for effect in codec_effects(table)}
    fronts = {column: set(frontier(table, column)) for column in (READ_TIME, SAVE_TIME)}
    headers = (
        *(f"save\n{time.name}", "", f"read\n{time.name}", "", "size\nratio", "reads faster\nbelow MB/s"),
        "Pareto\nfrontier",
    )
    lines = []
    for row in by_format(table):
        if row.measured and not row.variant.is_raw_io:
            marks = " ".join(column.operation for column, front in fronts.items() if row in front)
            effect = effects.get(row)
            values = _effect(effect, time) if effect else (NOTHING, "", NOTHING, "", "1", "")
            lines.append((row.label, (*values, marks), ""))
    page.print(labelled_grid("format", headers, lines, left=1))
    print_lines(page, codec_notes(table))


def _effect(effect: CodecEffect, time: Unit) -> tuple[str, ...]:
    ratio = NOTHING if effect.ratio is None else f"{effect.ratio:.2f}"
    return (
        *added_text(effect.save_delta_ns, time),
        *added_text(effect.read_delta_ns, time),
        ratio,
        break_even_text(effect.break_even),
    )


def _calls(page: Console, contents: Contents, table: Table) -> None:
    """Print the fastest and the slowest library call of each format, for save and read."""
    page.print()
    print_lines(page, [f"{table.dataset}: {TITLES['calls']}"], style="bold")
    grid = new_grid()
    for header in ("", *engines.HEADERS[:3]):
        grid.add_column(header, overflow="fold")
    for header in engines.HEADERS[3:]:
        grid.add_column(header, no_wrap=True)
    for column in (SAVE_TIME, READ_TIME):
        for place, calls in enumerate(engines.calls_of(table, column)):
            grid.add_row(column.operation if place == 0 else "", *map(escape, engines.texts(calls)))
    page.print(grid)
    print_lines(page, engines.answers(table))


# --- of the run ---------------------------------------------------------------------------------------------------


def _means(page: Console, contents: Contents) -> None:
    for means in contents.means:
        page.print()
        names = ", ".join(table.dataset for table in means.tables)
        where = conditions_text(means.tables[0].conditions)
        print_lines(page, [f"{names} ({where}): {TITLES['means']}"], style="bold")
        _means_grids(page, means)


def _means_grids(page: Console, means: Means) -> None:
    """Print the columns of save and read next to each other. Grids below have the columns of the other operations."""
    labels = short_labels(means.variants)
    main, further = (
        [column for column in means.columns if column.operation in operations]
        for operations in (means.columns.main, means.columns.further)
    )
    parts = [further[start : start + _MOST_MEANS] for start in range(0, len(further), _MOST_MEANS)]
    for shown in (main, *parts):
        grid = new_grid()
        grid.add_column("format", overflow="fold")
        for column in shown:
            title = column.title if shown is main else "\n".join(textwrap.wrap(column.title, _HEADER_WIDTH))
            grid.add_column(title, justify="right", no_wrap=True)
        for variant in means.variants:
            values = [means.by_column[column].get(variant) for column in shown]
            if any(value is not None for value in values):
                texts = (NOTHING if value is None else f"{value:.2f}" for value in values)
                grid.add_row(escape(labels[variant]), *texts)
        page.print(grid)


def _legend(page: Console, contents: Contents) -> None:
    first = contents.tables[0]
    by = f"; rows are sorted by {first.columns.leading.title}" if first.columns.leading else ""
    pairs = [table for table in contents.tables if len(table.columns.main) > 1]
    spelled = [f"{initials(contents.run, table)}: {titles(contents.run, table.columns.main, '/')}" for table in pairs]
    words = (
        f"Medians of n counted rounds{by}. ±: half of the 95 % confidence interval; under 5 rounds, -a+b: minimum and "
        "maximum. *: best; =: tied with the best (the 95 % interval of the ratio contains 1); under 5 rounds only "
        f"sizes have marks. {''.join(f'{text}. ' for text in dict.fromkeys(spelled))}cores: CPU time / wall time. "
        "x raw: multiple of raw I/O, a plain write and read of the same buffers. Peak memory is private memory; ~: it "
        "differs from the resident peak by over 5 %, because only one of the two counts mapped file pages."
    )
    page.print()
    print_lines(page, [words, WHOSE_CHOICES])


def _remarks(page: Console, contents: Contents) -> None:
    for remark in contents.remarks:
        remedy = f"; {remark.remedy}" if remark.remedy else ""
        if remark.warns:
            print_lines(page, [f"warning: {remark.text}{remedy}"], style="yellow")
        else:
            print_lines(page, [f"{remark.text}{remedy}"])


OF_TABLE: Mapping[str, Callable[[Console, Contents, Table], None] | Elsewhere] = {
    "tables": _tables,
    "further operations": _further_operations,
    "uses": _uses,
    "codecs": _codecs,
    "calls": _calls,
}
"""The function that prints each section of a table. Sections that consist of `Figures` (tables of numbers) need no
entry."""
OF_RUN: Mapping[str, Callable[[Console, Contents], None] | Elsewhere] = {
    "throughput": show_throughput,
    "lines": show_lines,
    "means": _means,
    "fidelity": Elsewhere("too long to follow every run; shown by 'report RUN --fidelity'"),
    "legend": _legend,
    "remarks": _remarks,
}
"""The function that prints each section about a whole run. Sections that consist of `Figures` (tables of numbers) need
no entry."""
