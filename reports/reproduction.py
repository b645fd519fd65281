"""A run beside the thesis: its tables 6.3 to 6.7 next to our medians, Kendall's tau of the two orders, and a
judgement of each finding. Judgements are computed from the samples of the run; a pure function of a run and
the thesis's figures.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources

from rich.console import Console
from rich.table import Table as Grid

from bench_runner.records import Conditions, Run
from bench_runner.statistics import (
    FEWEST_ROUNDS,
    Interval,
    format_name,
    is_apart,
    kendall_tau,
    ratio_interval,
    smallest_shown,
)
from reports.findings import FAULTS, FINDINGS, FORMATS, READ, ROWS, SAVE, Finding, Pair, Subject
from reports.tables import COLUMNS, MEGABYTES, SECONDS, Column, Row, Table, conditions_text, tables
from reports.terminal import page_for, print_lines

_METRICS = dict(zip(("save_time_s", "read_time_s", "size_mb", "save_peak_mb", "read_peak_mb"), COLUMNS, strict=True))


class Verdict(Enum):
    """What becomes of a finding."""

    HOLDS = "holds"
    DOES_NOT = "does not"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True)
class Comparison:
    """One of our figures beside the thesis's, in seconds or megabytes."""

    dataset: str
    format: str
    """As the thesis names it."""
    column: Column
    ours: float
    """Median."""
    least: float
    """What the run's probe can tell at least; 0 for times and sizes."""
    rounds: int
    theirs: float


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau of our order and theirs, over the formats that both have."""

    dataset: str
    column: Column
    tau: float | None
    formats: int


@dataclass(frozen=True)
class Judgement:
    """What the run says of a finding, with the figures that decide it."""

    finding: Finding
    verdict: Verdict
    figures: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Reproduction:
    """Everything that a run has to say to the thesis."""

    conditions: Conditions | None
    comparisons: tuple[Comparison, ...]
    agreements: tuple[Agreement, ...]
    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...]
    """What is left out, and which conditions differ from the thesis's."""


@dataclass(frozen=True)
class _Ours:
    """What the run has of the thesis's cells."""

    figures: Mapping[Subject, tuple[Interval, Mapping[int, int]]]
    least_bytes: int


@cache
def thesis_figures() -> Mapping[Subject, float]:
    """The thesis's tables 6.3 to 6.7, in seconds and megabytes, from reports/published/thesis_tabular.csv."""
    text = resources.files("reports").joinpath("published/thesis_tabular.csv").read_text(encoding="utf-8")
    return {
        Subject(_METRICS[row["metric"]], row["format"], row["dataset"]): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }


def reproduce(run: Run) -> Reproduction:
    """Compare a run with the thesis, on the track and target that the thesis has: plain, pandas."""
    chosen, left_out = _chosen(tables(run))
    figures = {}
    for table in chosen:
        for theirs, name in FORMATS.items():
            row = _row(table, name)
            for column in COLUMNS:
                interval = row.interval(column) if row else None
                if row is not None and interval is not None:
                    by_round = row.cells[column.operation].by_round[column.figure]
                    figures[Subject(column, theirs, table.dataset)] = (interval, by_round)
    ours = _Ours(figures, smallest_shown(run.info))
    comparisons = tuple(_comparisons(ours))
    return Reproduction(
        chosen[0].conditions if chosen else None,
        comparisons,
        tuple(_agreements(comparisons)),
        tuple(_judge(finding, ours, left_out) for finding in FINDINGS),
        tuple(_notes(chosen, left_out)),
    )


def _chosen(found: Sequence[Table]) -> tuple[list[Table], dict[str, str]]:
    """The tables that the thesis has too, one for each data set, all under the conditions of the first; and
    why other data sets are left out."""
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
    for name in ROWS:
        left_out.setdefault(name, "not in this run")
    return list(chosen.values()), {name: text for name, text in left_out.items() if name not in chosen}


def _notes(chosen: Sequence[Table], left_out: Mapping[str, str]) -> Iterator[str]:
    for text, names in _by_text(left_out).items():
        yield f"not compared, {text}: {', '.join(names)}"
    if chosen and chosen[0].conditions.strings != "object":
        yield "strings are pandas' str here; in the thesis they were Python objects (--strings object)"


def _by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The data sets of each text."""
    found: dict[str, list[str]] = {}
    for dataset, text in texts.items():
        found.setdefault(text, []).append(dataset)
    return found


def _unlike_the_thesis(conditions: Conditions) -> tuple[bool, bool, bool, bool]:
    return (
        conditions.cache != "warm",
        conditions.threads != "default",
        conditions.strings != "object",
        conditions.work_dir != "default",
    )


def _row(table: Table, name: str) -> Row | None:
    """The row that stands for a format: as the bare call has it, so the one with the fewest settings."""
    rows = [
        row for row in table.rows if format_name(row.variant) == name and row.measured and not is_apart(row.variant)
    ]
    return min(rows, key=lambda row: len(row.variant), default=None)


def _people(column: Column, value: float) -> float:
    return value / (SECONDS if column.figure == "wall_ns" else MEGABYTES).scale


def _comparisons(ours: _Ours) -> Iterator[Comparison]:
    for subject, (interval, _) in ours.figures.items():
        theirs = thesis_figures().get(subject)
        if theirs is not None:
            least = _people(subject.column, ours.least_bytes) if subject.column.is_memory else 0.0
            median = max(_people(subject.column, interval.median), least)
            yield Comparison(subject.dataset, subject.format, subject.column, median, least, interval.rounds, theirs)


def _agreements(comparisons: Sequence[Comparison]) -> Iterator[Agreement]:
    groups: dict[tuple[str, Column], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.dataset, comparison.column), []).append(comparison)
    for (dataset, column), group in groups.items():
        tau = kendall_tau([item.ours for item in group], [item.theirs for item in group])
        yield Agreement(dataset, column, tau, len(group))


# --- judging ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Weighed:
    """A pair on one data set. `ratio` is lower times factor over higher; the pair holds below 1."""

    pair: Pair
    ratio: float
    tied: bool


def _judge(finding: Finding, ours: _Ours, left_out: Mapping[str, str]) -> Judgement:
    if not finding.pairs:
        return Judgement(finding, Verdict.NOT_TESTABLE, (), finding.elsewhere)
    verdicts: dict[str, Verdict] = {}
    figures: dict[str, str] = {}
    reasons: dict[str, str] = {}
    decisive: list[Pair] = []
    for dataset in finding.datasets:
        pairs = [_placed(pair, dataset) for pair in finding.pairs]
        lacking = _lacking(finding, pairs, ours)
        weighed = [found for pair in pairs if (found := _weigh(pair, ours)) is not None]
        if lacking or not weighed:
            reasons[dataset] = left_out.get(dataset) or lacking or "no format has enough rounds"
            continue
        closest = max(weighed, key=lambda found: found.ratio)
        verdicts[dataset] = _verdict(weighed)
        figures[dataset] = _evidence(closest, ours, dataset)
        decisive.append(closest.pair)
        if verdicts[dataset] is Verdict.NOT_TESTABLE:
            reasons[dataset] = "tied, so no verdict"
    verdict = _combined(list(verdicts.values()), finding.some)
    return Judgement(finding, verdict, tuple(figures.values()), _reason(finding, verdict, reasons, decisive))


def _placed(pair: Pair, dataset: str) -> Pair:
    """The pair on a data set, unless it names its own."""

    def on(subject: Subject) -> Subject:
        return subject if subject.dataset else Subject(subject.column, subject.format, dataset)

    return Pair(on(pair.lower), on(pair.higher), pair.factor)


def _lacking(finding: Finding, pairs: Sequence[Pair], ours: _Ours) -> str:
    """Why a finding cannot be tested with these pairs: a format that it is about has no figure, or few
    rounds."""
    for pair in pairs:
        for subject in (pair.lower, pair.higher):
            if subject.format not in finding.about:
                continue
            if subject not in ours.figures:
                return f"no {subject.column.title} of {subject.format}{_where(pair, subject)}"
            rounds = ours.figures[subject][0].rounds
            if rounds < FEWEST_ROUNDS:
                told = f"{subject.format} has {rounds} round{'s' * (rounds > 1)}{_where(pair, subject)}"
                return f"{told}, {FEWEST_ROUNDS} are needed"
    return ""


def _where(pair: Pair, subject: Subject) -> str:
    """The data set, where a pair has two."""
    return f" on {subject.dataset}" if pair.lower.dataset != pair.higher.dataset else ""


def _weigh(pair: Pair, ours: _Ours) -> _Weighed | None:
    if pair.lower not in ours.figures or pair.higher not in ours.figures:
        return None
    ratio = ratio_interval(_values(pair.lower, ours, pair.factor), _values(pair.higher, ours, 1.0))
    if ratio is None or ratio.tied is None:
        return None
    return _Weighed(pair, ratio.ratio, ratio.tied)


def _values(subject: Subject, ours: _Ours, factor: float) -> dict[int, float]:
    least = ours.least_bytes if subject.column.is_memory else 0
    return {number: max(value, least) * factor for number, value in ours.figures[subject][1].items()}


def _verdict(weighed: Sequence[_Weighed]) -> Verdict:
    if any(found.ratio > 1 and not found.tied for found in weighed):
        return Verdict.DOES_NOT
    return Verdict.NOT_TESTABLE if any(found.tied for found in weighed) else Verdict.HOLDS


def _combined(verdicts: Sequence[Verdict], some: bool) -> Verdict:
    """All data sets must agree, or one if `some`; what is left open stays open."""
    first, second = (Verdict.HOLDS, Verdict.DOES_NOT) if some else (Verdict.DOES_NOT, Verdict.HOLDS)
    if first in verdicts:
        return first
    if not verdicts or Verdict.NOT_TESTABLE in verdicts:
        return Verdict.NOT_TESTABLE
    return second


def _evidence(closest: _Weighed, ours: _Ours, dataset: str) -> str:
    """The pair that decides: the one that is nearest to failing, or fails most."""
    told = []
    for subject in (closest.pair.lower, closest.pair.higher):
        told.append(f"{subject.format} {_figure_text(subject, ours)}")
    where = dataset or f"{closest.pair.lower.dataset} and {closest.pair.higher.dataset}"
    columns = (closest.pair.lower.column, closest.pair.higher.column)
    if columns[0] != columns[1]:
        told = [f"{text} ({column.operation})" for text, column in zip(told, columns, strict=True)]
    return f"{where}: {', '.join(told)}"


def _figure_text(subject: Subject, ours: _Ours) -> str:
    unit = SECONDS if subject.column.figure == "wall_ns" else MEGABYTES
    median = ours.figures[subject][0].median
    if subject.column.is_memory and median < ours.least_bytes:
        return f"< {unit.text(ours.least_bytes)} {unit.name}"
    return f"{unit.text(median)} {unit.name}"


def _reason(finding: Finding, verdict: Verdict, reasons: Mapping[str, str], decisive: Sequence[Pair]) -> str:
    parts = []
    if verdict is Verdict.DOES_NOT:
        parts += _faults(decisive)
    if verdict is not Verdict.NOT_TESTABLE and not _true_of_the_thesis(finding):
        parts.append("the thesis's own tables do not bear it out on every data set")
    for text, names in _by_text(reasons).items():
        parts.append(f"{', '.join(names)}: {text}" if any(names) else text)
    return "; ".join(parts)


def _faults(pairs: Sequence[Pair]) -> list[str]:
    """The thesis's own faults that touch the figures that decided."""
    subjects = {subject for pair in pairs for subject in (pair.lower, pair.higher)}
    return [
        fault.text
        for fault in FAULTS
        if any(
            subject.column in fault.columns and (not fault.formats or subject.format in fault.formats)
            for subject in subjects
        )
    ]


def _true_of_the_thesis(finding: Finding) -> bool:
    """Whether a finding is true of the thesis's own tables, as far as they have its figures."""
    theirs = thesis_figures()

    def holds(pair: Pair) -> bool:
        lower, higher = theirs.get(pair.lower), theirs.get(pair.higher)
        return lower is None or higher is None or lower * pair.factor < higher

    answers = [all(holds(_placed(pair, dataset)) for pair in finding.pairs) for dataset in finding.datasets]
    return any(answers) if finding.some else all(answers)


# --- showing ------------------------------------------------------------------------------------------------------

_TAU = "Kendall's tau of the two orders: 1 is the same order, -1 the reverse (number of formats)"


def show_reproduction(run: Run, console: Console) -> None:
    """Print the comparison on the terminal."""
    page = page_for(console)
    found = reproduce(run)
    for title, head, lines in _grids(found):
        page.print()
        print_lines(page, [title], style="bold")
        grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for place, name in enumerate(head):
            grid.add_column(name, justify="right" if place else "left")
        for line in lines:
            grid.add_row(*line)
        page.print(grid)
    print_lines(page, found.notes)
    page.print()
    print_lines(page, [f"findings: {_count(found)}"], style="bold")
    for judgement in found.judgements:
        print_lines(page, [f"{judgement.verdict.value}: {judgement.finding.statement} ({judgement.finding.place})"])
        details = [*judgement.figures, *([judgement.reason] if judgement.reason else [])]
        print_lines(page, [f"  {text}" for text in details])


def reproduction_markdown(run: Run) -> str:
    """The comparison as Markdown, for docs/reproduction.md."""
    found = reproduce(run)
    parts = []
    for title, head, lines in _grids(found):
        rows = [head, ["---"] * len(head), *lines]
        parts.append(f"## {title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows))
    parts.append("\n".join(f"- {text}" for text in found.notes))
    rows = [["finding", "where", "verdict", "our figures", "reason"], ["---"] * 5]
    for judgement in found.judgements:
        finding = judgement.finding
        figures = "<br>".join(judgement.figures)
        rows.append([finding.statement, finding.place, judgement.verdict.value, figures, judgement.reason])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    parts.append(f"## Findings: {_count(found)}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _count(found: Reproduction) -> str:
    counts = [sum(item.verdict is verdict for item in found.judgements) for verdict in Verdict]
    return f"{counts[0]} hold, {counts[1]} do not, {counts[2]} are not testable here"


def _grids(found: Reproduction) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, head and lines of each table: one for each data set, then the agreement of the orders."""
    where = f" ({conditions_text(found.conditions)})" if found.conditions else ""
    datasets = list(dict.fromkeys(item.dataset for item in found.comparisons))
    cells = {(item.dataset, item.format, item.column): _both(item) for item in found.comparisons}
    for dataset in datasets:
        head = ["format", *(f"{column.title}, {_unit_name(column)}" for column in COLUMNS)]
        lines = [
            [name, *(cells.get((dataset, name, column), "") for column in COLUMNS)]
            for name in FORMATS
            if any((dataset, name, column) in cells for column in COLUMNS)
        ]
        yield f"{dataset}: ours / the thesis's{where}", head, lines
    if datasets:
        taus = {(item.column, item.dataset): _tau(item) for item in found.agreements}
        lines = [[column.title, *(taus.get((column, name), "") for name in datasets)] for column in COLUMNS]
        yield _TAU, ["", *datasets], lines


def _unit_name(column: Column) -> str:
    return "s" if column in (SAVE, READ) else "MB"


def _both(item: Comparison) -> str:
    ours = f"{item.ours:.3g}" if item.ours < 100 else f"{item.ours:,.0f}"
    below = "<" if item.least and item.ours <= item.least else ""
    return f"{below}{ours} / {item.theirs:,g}"


def _tau(item: Agreement) -> str:
    return f"{'-' if item.tau is None else f'{item.tau:.2f}'} ({item.formats})"
