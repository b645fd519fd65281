"""Compare a run with the thesis (M. Tarageľ, 2024): tables 6.3 to 6.7 next to our medians, Kendall's tau (how well two
rankings agree), and a verdict on each finding.

Verdicts are computed from the run's samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from rich.console import Console
from rich.table import Table as Grid

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Cell, Conditions, Run
from bench_runner.results.statistics import CellSummary, kendall_tau, smallest_shown
from reports.analysis.codecs import has_codecs
from reports.analysis.columns import THESIS_METRICS, Column, Role
from reports.analysis.engines import is_about_calls
from reports.analysis.near_storage.workloads import published_rows
from reports.analysis.repeat_command import command_text
from reports.analysis.tables import Table, tables
from reports.analysis.units import MEGABYTES, SECONDS
from reports.sources import reproduction_codecs, reproduction_images
from reports.sources.findings import FORMATS, ROWS, TABLES
from reports.sources.judgement import Judgement, Ours, by_text, count_text, judge
from reports.sources.rows import Subject
from reports.sources.side_by_side import Entry, SideBySide
from reports.sources.table_cells import Cells, cells_of, figures_of
from reports.text.page import markdown_table, page_for, print_lines

_METRICS = dict(
    zip(("save_time_s", "read_time_s", "size_mb", "save_peak_mb", "read_peak_mb"), THESIS_METRICS, strict=True)
)


@dataclass(frozen=True)
class FigurePair:
    """One of our figures and the thesis's figure for the same format and data set, in seconds or megabytes."""

    dataset: str
    format: str
    """The format's name in the thesis."""
    column: Column
    cell: Cell
    ours: float
    """Our median."""
    least: float
    """Smallest memory that the measurement can distinguish from 0. It is 0 if the figure is a time or a size."""
    rounds: int
    theirs: float


@dataclass(frozen=True)
class Agreement:
    """Agreement between our ranking and the thesis's ranking as Kendall's tau (1: same order, -1: reverse order). Only
    formats in both rankings count."""

    dataset: str
    column: Column
    tau: float | None
    formats: int


@dataclass(frozen=True)
class Reproduction:
    """The whole comparison of a run with the thesis."""

    conditions: Conditions | None
    comparisons: tuple[FigurePair, ...]
    agreements: tuple[Agreement, ...]
    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...]
    """Notes on parts that are left out, and on conditions that differ from those of the thesis."""
    more: tuple[SideBySide, ...] = ()
    """The tables of codecs and of images."""


@cache
def thesis_figures() -> Mapping[Subject, float]:
    """Return the thesis's tables 6.3 to 6.7, in seconds and megabytes."""
    return {
        Subject(_METRICS[row["metric"]], row["format"], row["dataset"]): float(row["value"])
        for row in published_rows("thesis_tabular.csv")
    }


def reproduce(run: Run) -> Reproduction:
    """Return the comparison of a run with the thesis. As in the thesis, it covers tables without a codec (track
    `plain`) that are read into pandas (target `pandas`), codecs, and images.

    A part is compared only if the run measured that part.
    """
    found = tables(run)
    codecs = [table for table in found if has_codecs(table)]
    images = [table for table in found if table.conditions.target == "images"]
    tabular = [table for table in found if not (table in codecs or table in images or is_about_calls(table))]
    result = _tabular(run, tabular) if tabular or not found else Reproduction(None, (), (), (), ())
    if codecs:
        table = reproduction_codecs.table_of(codecs)
        judged = reproduction_codecs.judgements(table, _webface_is_generated(run))
        more = (*result.more, reproduction_codecs.grid(table)) if table else result.more
        result = replace(result, judgements=(*result.judgements, *judged), more=more)
    if images:
        chosen, left_out = reproduction_images.tables_of(images)
        judged = reproduction_images.judgements(chosen, left_out)
        grids = tuple(reproduction_images.grid(name, table) for name, table in chosen.items())
        notes = tuple(f"not compared, {text}: {name}" for name, text in left_out.items())
        if any(map(reproduction_images.is_generated, chosen.values())):
            notes += ("cifar-like images are generated, with the number, shape and compressibility of CIFAR-10",)
        result = replace(
            result, judgements=(*result.judgements, *judged), more=(*result.more, *grids), notes=(*result.notes, *notes)
        )
    return result


def _webface_is_generated(run: Run) -> bool:
    """Return whether the data set webface is generated, because the user gave no file for it."""
    return run.info.request.webface is None


def _tabular(run: Run, found: Sequence[Table]) -> Reproduction:
    chosen, left_out = _chosen(found)
    cells: dict[Subject, CellSummary] = {}
    for table in chosen:
        cells |= cells_of(table, FORMATS, THESIS_METRICS, table.dataset)
    ours = Ours(figures_of(cells), smallest_shown(run.info))
    comparisons = tuple(_comparisons(ours, cells))
    return Reproduction(
        chosen[0].conditions if chosen else None,
        comparisons,
        tuple(_agreements(comparisons)),
        tuple(judge(finding, ours, thesis_figures(), left_out) for finding in TABLES),
        tuple(_notes(chosen, left_out, _webface_is_generated(run))),
    )


def _chosen(found: Sequence[Table]) -> tuple[list[Table], dict[str, str]]:
    """Return the tables to compare, and the reason why each other data set is not compared.

    Each data set has at most one table. All tables have the conditions of the first one.
    """
    alike = [table for table in found if table.conditions.track == "plain" and table.conditions.target == "pandas"]
    alike.sort(key=lambda table: _unlike_the_thesis(table.conditions))
    chosen: dict[str, Table] = {}
    left_out: dict[str, str] = {}
    for table in alike:
        name = table.dataset
        if name not in ROWS:
            left_out[name] = "not in the thesis"
        elif table.data_rows != ROWS[name]:
            left_out[name] = f"{table.data_rows:,} rows here, {ROWS[name]:,} in the thesis"
        elif not chosen or table.conditions == next(iter(chosen.values())).conditions:
            chosen.setdefault(name, table)
    for table in found:
        if table not in alike:
            left_out.setdefault(table.dataset, "not run on track plain with target pandas, as in the thesis")
    for dataset in ROWS:
        left_out.setdefault(dataset, "not in this run")
    return list(chosen.values()), {name: text for name, text in left_out.items() if name not in chosen}


def _notes(chosen: Sequence[Table], left_out: Mapping[str, str], generated: bool) -> Iterator[str]:
    for text, names in by_text(left_out).items():
        yield f"not compared, {text}: {', '.join(names)}"
    if chosen and chosen[0].conditions.strings != "object":
        yield "strings are pandas' str here; the thesis has Python objects (--strings object)"
    if generated and any(table.dataset == "webface" for table in chosen):
        yield (
            "webface is generated with the thesis's bytes per row: findings that depend on how its values compress "
            "have no verdict"
        )


def _unlike_the_thesis(conditions: Conditions) -> tuple[bool, bool, bool, bool]:
    return (
        conditions.cache != "warm",
        conditions.threads != "default",
        conditions.strings != "object",
        conditions.work_dir != "default",
    )


def _people(column: Column, value: float) -> float:
    return value / (SECONDS if column.role is Role.TIME else MEGABYTES).scale


def _comparisons(ours: Ours, cells: Cells) -> Iterator[FigurePair]:
    for subject, (interval, _) in ours.figures.items():
        theirs = thesis_figures().get(subject)
        if theirs is not None:
            least = _people(subject.column, ours.least_bytes) if subject.column.is_memory else 0.0
            median = max(_people(subject.column, interval.median), least)
            where = subject.dataset, subject.format, subject.column, cells[subject].cell
            yield FigurePair(*where, median, least, interval.rounds, theirs)


def _agreements(comparisons: Sequence[FigurePair]) -> Iterator[Agreement]:
    groups: dict[tuple[str, Column], list[FigurePair]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.dataset, comparison.column), []).append(comparison)
    for (dataset, column), group in groups.items():
        tau = kendall_tau([item.ours for item in group], [item.theirs for item in group])
        yield Agreement(dataset, column, tau, len(group))


# --- showing ------------------------------------------------------------------------------------------------------

_TAU = "Kendall's tau of our order and the thesis's: 1 same, -1 reverse (number of formats)"


def show_reproduction(run: Run, console: Console) -> None:
    """Print the comparison on the terminal."""
    page = page_for(console)
    found = reproduce(run)
    for beside in grids(found):
        page.print()
        print_lines(page, [beside.title], style="bold")
        grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for place, name in enumerate(beside.head):
            grid.add_column(name, justify="right" if place else "left")
        for line in beside.texts:
            grid.add_row(*line)
        page.print(grid)
    print_lines(page, found.notes)
    page.print()
    print_lines(page, [f"findings: {_counted(found)}"], style="bold")
    for judgement in found.judgements:
        print_lines(page, [f"{judgement.verdict.value}: {judgement.finding.statement} ({judgement.finding.place})"])
        details = [*judgement.figures, *([judgement.reason] if judgement.reason else [])]
        print_lines(page, [f"  {text}" for text in details])


def reproduction_markdown(run: Run) -> str:
    """Return the comparison as Markdown."""
    found = reproduce(run)
    parts = [_source(run)]
    parts += [f"## {beside.title}\n\n{markdown_table(beside.head, beside.texts)}" for beside in grids(found)]
    parts.append("\n".join(f"- {text}" for text in found.notes))
    rows = []
    for judgement in found.judgements:
        finding, figures = judgement.finding, "<br>".join(judgement.figures)
        rows.append((finding.statement, finding.place, judgement.verdict.value, figures, judgement.reason))
    table = markdown_table(("finding", "where", "verdict", "our figures", "reason"), rows)
    parts.append(f"## Findings: {_counted(found)}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _source(run: Run) -> str:
    """Return a paragraph that names the run, its command and its machine."""
    info, machine = run.info, run.info.machine
    words = f"`{command_text(info.command)}`, " if info.command else ""
    told = [machine.cpu or "", f"{machine.cores} cores" if machine.cores else ""]
    if machine.is_virtual:
        told.append(f"on {machine.virtualisation}")
    commit = f", commit {info.commit[:10]}" if info.commit else ""
    partial = "; the run is incomplete" if info.partial else ""
    return (
        f"Made by `report RUN --against thesis --markdown` from {words}{(info.started or '')[:10]}"
        f"{commit} ({', '.join(text for text in told if text)}){partial}. Our figures are medians of verified rounds. "
        "The thesis's are from another machine and other versions, so compare orders rather than values."
    )


def _counted(found: Reproduction) -> str:
    return count_text([item.verdict for item in found.judgements])


def grids(found: Reproduction) -> Iterator[SideBySide]:
    """Yield a table for each data set, then the agreement of the rankings, and last the tables of codecs and of
    images."""
    where = f" ({conditions_text(found.conditions)})" if found.conditions else ""
    datasets = list(dict.fromkeys(item.dataset for item in found.comparisons))
    entries = {
        (item.dataset, item.format, item.column): Entry(_both_text(item), item.cell) for item in found.comparisons
    }
    for dataset in datasets:
        head = ("format", *(f"{column.title}, {_unit_name(column)}" for column in THESIS_METRICS))
        lines = tuple(
            (Entry(name), *(entries.get((dataset, name, column), Entry("")) for column in THESIS_METRICS))
            for name in FORMATS
            if any((dataset, name, column) in entries for column in THESIS_METRICS)
        )
        yield SideBySide(f"{dataset}: ours / thesis{where}", head, lines)
    if datasets:
        taus = {(item.column, item.dataset): Entry(_tau(item)) for item in found.agreements}
        lines = tuple(
            (Entry(column.title), *(taus.get((column, name), Entry("")) for name in datasets))
            for column in THESIS_METRICS
        )
        yield SideBySide(_TAU, ("", *datasets), lines)
    yield from found.more


def _unit_name(column: Column) -> str:
    return "s" if column.role is Role.TIME else "MB"


def _both_text(item: FigurePair) -> str:
    """Return 'ours / thesis'."""
    ours = f"{item.ours:.3g}" if item.ours < 100 else f"{item.ours:,.0f}"
    below = "<" if item.least and item.ours <= item.least else ""
    return f"{below}{ours} / {item.theirs:,g}"


def _tau(item: Agreement) -> str:
    return f"{'-' if item.tau is None else f'{item.tau:.2f}'} ({item.formats})"
