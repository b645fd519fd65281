"""What the pages of the site say, as plain values: every figure with its words, its mark and its address.

All statistics are those of reports.analysis.tables and its neighbours, in their words; this module adds addresses and
places. It knows neither HTML nor how charts are drawn, and computes nothing that another report does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from bench_runner.results.records import FIGURES, Cell, Run, Sample
from bench_runner.results.statistics import CellSummary, Interval, Ratio, format_name, is_apart, is_raw_io, summarise
from reports.analysis.columns import Column
from reports.analysis.labels import conditions_text
from reports.analysis.tables import COLUMNS, Row, Table, distinguishing_names, tables, unit_for, value_text
from reports.analysis.units import MEGABYTES, MILLISECONDS, SECONDS, Unit, spread_text
from reports.pdf.report import BANDS
from reports.text.terminal import LONG_NS, groups_of, overall_means

BAND_NAMES = ("best", "near", "some", "far", "farthest")
"""One for each of the bands of the ratio to the best."""
APART, NONE = "apart", "none"
"""Not ranked, and no figure."""
OVERALL = "all data sets"
TRACKS = {
    "plain": "plain: no codec",
    "default": "default: the library default",
    "equal": "equal: zstd level 1",
    "codecs": "codecs beside each other",
}
TARGETS = {"pandas": "pandas DataFrame", "arrow": "Arrow table", "images": "list of arrays"}


def slug(text: str) -> str:
    """A part of an address that any file system and any browser takes: small letters, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80] or "unnamed"


@dataclass
class Slugs:
    """Gives each text an address that no other has."""

    taken: set[str] = field(default_factory=set)

    def of(self, text: str) -> str:
        """A slug of `text`, with a number where another text has it already."""
        first = slug(text)
        found, number = first, 2
        while found in self.taken:
            found, number = f"{first}-{number}", number + 1
        self.taken.add(found)
        return found


# --- one run ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """One run, with its place in the site."""

    run: Run
    slug: str
    files: str
    """The folder of its raw files, from the site's."""

    @cached_property
    def summaries(self) -> Mapping[Cell, CellSummary]:
        """The summary of each cell."""
        return summarise(self.run.samples)

    @cached_property
    def tables(self) -> tuple[TableView, ...]:
        """Its tables, each with a name that no other table of the site has."""
        found = tables(self.run, self.summaries)
        names, slugs = distinguishing_names(found), Slugs()
        return tuple(TableView(self, table, slugs.of(names[number])) for number, table in enumerate(found))

    @property
    def name(self) -> str:
        """The run's own name."""
        return str(self.run.info.get("id") or self.run.folder.name)

    @property
    def title(self) -> str:
        """What tells it from other runs: name, day, machine, version."""
        info = self.run.info
        machine = mapping(info.get("machine")).get("name")
        parts = [
            str(info.get("started") or "")[:10],
            f"on {machine}" if machine else "",
            f"version {str(info['commit'])[:7]}" if info.get("commit") else "",
        ]
        told = ", ".join(part for part in parts if part)
        return f"{self.name} ({told})" if told else self.name

    @cached_property
    def suites(self) -> tuple[str, ...]:
        """The suites that it has tables of."""
        return tuple(dict.fromkeys(view.table.suite for view in self.tables))

    def address_of(self, variant: str, suite: str) -> str:
        """Of the first samples of a variant, in one of the tables of a suite where there is one."""
        rows = [row for view in self.tables for row in view.rows if row.row.variant == variant]
        rows.sort(key=lambda row: row.view.table.suite != suite)
        return rows[0].address("save")

    @cached_property
    def samples(self) -> Mapping[Cell, Sequence[Sample]]:
        """Every execution of each cell, in the order in which they were stored; without pilot rounds."""
        found: dict[Cell, list[Sample]] = {}
        for sample in self.run.samples:
            if sample.round > 0:
                found.setdefault(sample.cell, []).append(sample)
        return found


def places(runs: Iterable[Run], files_in: str = "") -> list[Place]:
    """The runs with their places, in the order given. `files_in` names the folder of the site in which the runs' own
    folders lie; without it their files are copied to places of the site."""
    slugs = Slugs()
    named = [(run, slugs.of(str(run.info.get("id") or run.folder.name))) for run in runs]
    return [
        Place(run, name, f"{files_in}/{quote(run.folder.name)}" if files_in else f"data/{name}") for run, name in named
    ]


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one: run.json may hold anything."""
    return value if isinstance(value, dict) else {}


# --- one figure ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """One figure, or why there is none."""

    text: str
    """With its unit: '52.3 ms'; in a word why there is none."""
    spread: str
    mark: str
    ratio: str
    """Times the best: '1.13'; '' where it is not ranked."""
    band: str
    address: str
    """Of its samples, from the site's folder."""
    words: str
    """All of it in a sentence."""

    @property
    def measured(self) -> bool:
        """Whether there is a figure."""
        return self.band != NONE


@dataclass(frozen=True)
class Best:
    """Who is best in one column, who is tied with it, and how far the next is."""

    column: Column
    label: str
    figure: Shown
    tied: tuple[str, ...]
    next: str
    """'csv, 1.31 times (1.28 to 1.34)', '' when there is none."""
    verdict: bool
    """Whether there are rounds enough for one."""


@dataclass(frozen=True, eq=False)
class RowView:
    """One variant in one table."""

    view: TableView
    row: Row
    slug: str

    @property
    def format(self) -> str:
        """The format that it belongs to."""
        return format_name(self.row.variant)

    @property
    def title(self) -> str:
        """Its format's name for people."""
        described = mapping(mapping(self.view.place.run.info.get("variants")).get(self.row.variant))
        return str(described.get("title") or self.format)

    @property
    def is_raw_io(self) -> bool:
        """Whether it is the yardstick."""
        return is_raw_io(self.row.variant)

    @property
    def is_apart(self) -> bool:
        """Whether it is never ranked with the others."""
        return is_apart(self.row.variant)

    def address(self, operation: str) -> str:
        """Of the samples of one of its cells; of another one where this was not run."""
        known = operation if operation in self.row.cells else next(iter(self.row.cells))
        return f"{self.view.samples_address}#{self.anchor(known)}"

    def anchor(self, operation: str) -> str:
        """The part behind '#'."""
        return f"{slug(operation)}-{self.slug}"

    @cached_property
    def figures(self) -> tuple[Shown, ...]:
        """One for each of COLUMNS."""
        return tuple(self.view.shown(self, column) for column in COLUMNS)


@dataclass(frozen=True, eq=False)
class TableView:
    """One table: all variants on one data set under one set of conditions in one run."""

    place: Place
    table: Table
    name: str

    @property
    def id(self) -> str:
        """Its name in addresses."""
        return f"{self.place.slug}-{self.name}"

    @property
    def samples_address(self) -> str:
        """The page of its samples."""
        return f"samples/{self.id}.html"

    @property
    def page(self) -> str:
        """The page of its suite."""
        return suite_page(self.table.suite)

    @cached_property
    def facets(self) -> Mapping[str, str]:
        """What one chooses it by."""
        table, conditions = self.table, self.table.conditions
        return {
            "suite": table.suite,
            "run": self.place.slug,
            "machine": table.machine,
            "track": conditions.track,
            "target": conditions.target,
            "cache": conditions.cache,
            "threads": conditions.threads,
            "strings": conditions.strings,
            "folder": conditions.work_dir,
            "dataset": table.dataset,
            "amount": table.amount,
        }

    @property
    def choice(self) -> str:
        """What chooses it on the page of its suite, as the part of the address behind '#'."""
        return urlencode({key: value for key, value in self.facets.items() if key not in ("suite", "amount")})

    @property
    def title(self) -> str:
        """'eq, 1,000,000 rows'."""
        return f"{self.table.dataset}, {self.table.amount}"

    @property
    def data_title(self) -> str:
        """What the data set is, where its run says so."""
        described = mapping(mapping(self.place.run.info.get("datasets")).get(self.table.dataset))
        title = str(described.get("title") or "")
        return "" if title == self.table.dataset else title

    @property
    def conditions(self) -> str:
        """In words."""
        return conditions_text(self.table.conditions)

    @cached_property
    def rows(self) -> tuple[RowView, ...]:
        """In the order of the table."""
        slugs = Slugs()
        return tuple(RowView(self, row, slugs.of(row.variant)) for row in self.table.rows)

    @cached_property
    def formats(self) -> tuple[str, ...]:
        """The formats that have a row, without raw I/O."""
        return tuple(sorted({row.format for row in self.rows if not row.is_raw_io}))

    def unit(self, column: Column) -> Unit:
        """The unit of a column."""
        return MEGABYTES if column.is_memory else unit_for(self.table, column.figure)

    def shown(self, row: RowView, column: Column) -> Shown:
        """One figure of one row."""
        interval = row.row.interval(column)
        if interval is None:
            why = why_none(row.row, column)
            return Shown(why, "", "", "", NONE, row.address(column.operation), f"{column.title}: {why}")
        text = self.text(row, column, interval)
        ratio = self.table.ranks[column].get(row.row.variant)
        spread = spread_text(interval)
        mark = self.table.mark(column, row.row.variant)
        return Shown(
            text,
            spread,
            mark,
            ratio_text(ratio.ratio) if ratio else "",
            _band(ratio),
            row.address(column.operation),
            _words(row.row.label, column, text, spread, mark, ratio, interval),
        )

    def text(self, row: RowView, column: Column, interval: Interval) -> str:
        """A figure with its unit; a long time is in seconds in a column of milliseconds too."""
        unit = self.unit(column)
        if unit is MILLISECONDS and interval.median >= LONG_NS:
            unit = SECONDS
        return f"{value_text(self.table, row.row, column, unit)} {unit.name}"

    @cached_property
    def bests(self) -> tuple[Best, ...]:
        """Who is best in each column that has a figure."""
        rows = {row.row.variant: row for row in self.rows}
        found = []
        for column in COLUMNS:
            ranks = self.table.ranks[column]
            if not ranks:
                continue
            first = next(iter(ranks))
            tied = [rows[name].row.label for name in ranks if self.table.mark(column, name) == "="]
            others = [name for name in ranks if name != first and not self.table.mark(column, name)]
            following = ""
            if others:
                ratio = ranks[others[0]]
                following = f"{rows[others[0]].row.label}, {ratio_words(ratio)}"
            verdict = ranks[first].tied is not None
            shown = rows[first].figures[COLUMNS.index(column)]
            found.append(Best(column, rows[first].row.label, shown, tuple(tied), following, verdict))
        return tuple(found)


def suite_page(suite: str) -> str:
    """The address of a suite's page."""
    return f"suite-{slug(suite)}.html"


def why_none(row: Row, column: Column) -> str:
    """In a word why a row has no figure in a column."""
    summary = row.cells.get(column.operation)
    if summary is None:
        return "not run"
    return summary.failures[0].kind if summary.failures else "not counted"


def ratio_text(ratio: float) -> str:
    """Times the best: '1', '1.13', '12.4', '1,204'."""
    if ratio == 1:
        return "1"
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def ratio_words(ratio: Ratio) -> str:
    """'1.31 times (1.28 to 1.34)'; without the interval where there is none."""
    told = f"{ratio_text(ratio.ratio)} times"
    if ratio.low is None or ratio.high is None:
        return told
    return f"{told} ({ratio.low:.3g} to {ratio.high:.3g})"


def _band(ratio: Ratio | None) -> str:
    if ratio is None:
        return APART
    if ratio.tied:
        return BAND_NAMES[0]
    return next(name for name, (end, _, _) in zip(BAND_NAMES, BANDS, strict=True) if ratio.ratio <= end)


def band_meanings(few_rounds: bool) -> list[tuple[str, str]]:
    """What the colours say, from the best on."""
    meanings = [(name, meaning) for name, (_, _, meaning) in zip(BAND_NAMES, BANDS, strict=True)]
    if few_rounds:
        meanings[0] = (BAND_NAMES[0], "the lowest (no verdict)")
    return [*meanings, (APART, "not ranked: another result")]


def _words(
    label: str, column: Column, text: str, spread: str, mark: str, ratio: Ratio | None, interval: Interval
) -> str:
    rounds = f"{interval.rounds} round{'s' * (interval.rounds > 1)}"
    told = f"{label}, {column.title} {text}{f' {spread}' if spread else ''}, {rounds}"
    if ratio is None:
        return f"{told}; not ranked"
    if mark:
        return f"{told}; {'the best' if mark == '*' else 'tied with the best'}"
    return f"{told}; {ratio_words(ratio)} the best"


# --- over data sets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OverallRow:
    """One variant over all data sets of a group: its geometric means, and what they are made of."""

    label: str
    variant: str
    format: str
    slug: str
    means: tuple[float | None, ...]
    """For each of COLUMNS; None where a data set lacks it."""
    parts: tuple[tuple[RowView | None, TableView], ...]


@dataclass(frozen=True, eq=False)
class Group:
    """Tables that differ in their data set alone."""

    views: tuple[TableView, ...]
    name: str

    @property
    def id(self) -> str:
        """Its name in addresses."""
        return f"{self.views[0].place.slug}-{self.name}"

    @property
    def samples_address(self) -> str:
        """The page that says what its means are made of."""
        return f"samples/{self.id}.html"

    @property
    def facets(self) -> Mapping[str, str]:
        """Those of its tables, but for the data set."""
        return {**self.views[0].facets, "dataset": OVERALL, "amount": OVERALL}

    @cached_property
    def rows(self) -> tuple[OverallRow, ...]:
        """Every variant that is ranked in one of the tables, by read time; those without a mean last."""
        variants, means = overall_means([view.table for view in self.views])
        by_view = [{row.row.variant: row for row in view.rows} for view in self.views]
        slugs = Slugs()
        rows = []
        for variant in variants:
            parts = tuple((known.get(variant), view) for known, view in zip(by_view, self.views, strict=True))
            label = next(row.row.label for row, _ in parts if row is not None)
            told = tuple(means[column].get(variant) for column in COLUMNS)
            rows.append(OverallRow(label, variant, format_name(variant), slugs.of(variant), told, parts))
        return tuple(sorted(rows, key=lambda row: _placed(row.means)))


def _placed(means: Sequence[float | None]) -> tuple[bool, float]:
    read = means[1]
    return all(mean is None for mean in means), float("inf") if read is None else read


def groups(place: Place) -> list[Group]:
    """The groups of a run's tables that have more than one data set."""
    by_table = {id(view.table): view for view in place.tables}
    slugs = Slugs({view.name for view in place.tables})
    found = []
    for group in groups_of([view.table for view in place.tables]):
        first = group[0]
        name = slugs.of(f"overall-{first.suite}-{first.conditions.track}")
        found.append(Group(tuple(by_table[id(table)] for table in group), name))
    return found


def mean_band(mean: float | None) -> str:
    """The colour of a geometric mean of ratios."""
    if mean is None:
        return NONE
    return next(name for name, (end, _, _) in zip(BAND_NAMES, BANDS, strict=True) if mean <= end)


# --- choices ------------------------------------------------------------------------------------------------------

TITLES = {
    "suite": "Suite",
    "run": "Run",
    "machine": "Machine",
    "track": "Track",
    "target": "You hold",
    "cache": "Page cache",
    "threads": "Threads",
    "strings": "Strings",
    "folder": "Working folder",
    "dataset": "Data set",
    "amount": "Amount",
}


@dataclass(frozen=True)
class Facet:
    """One choice of a page: (value, text) of each option."""

    key: str
    title: str
    options: tuple[tuple[str, str], ...]


def facets(shown: Sequence[Mapping[str, str]], runs: Sequence[Place]) -> list[Facet]:
    """What there is to choose between on a page that shows things with these facets: what all share is no choice."""
    titles = {place.slug: place.title for place in runs}
    found = []
    for key, title in TITLES.items():
        values = list(dict.fromkeys(each[key] for each in shown if key in each))
        if key == "amount" or len(values) < 2:
            continue
        found.append(Facet(key, title, tuple((value, _option(key, value, titles)) for value in values)))
    return found


def _option(key: str, value: str, titles: Mapping[str, str]) -> str:
    if key == "run":
        return titles[value]
    if key == "threads":
        return "the libraries' own" if value == "default" else f"{value} thread"
    return {"track": TRACKS, "target": TARGETS}.get(key, {}).get(value, value)


# --- samples ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleLine:
    """One execution: its round, what became of it, and its figures as stored, None where it has none."""

    round: int
    position: int
    state: str
    counted: bool
    values: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class CellView:
    """One cell with all of its executions."""

    row: RowView
    summary: CellSummary
    names: tuple[str, ...]
    """The figures that it has, in the order of the register."""
    lines: tuple[SampleLine, ...]

    @property
    def medians(self) -> tuple[Interval | None, ...]:
        """Of the counted executions, one for each of `names`."""
        return tuple(self.summary.figures.get(name) for name in self.names)


def cell_view(row: RowView, operation: str) -> CellView:
    """A cell of a row, with its samples."""
    summary = row.row.cells[operation]
    samples = row.view.place.samples.get(summary.cell, ())
    names = tuple(name for name in FIGURES if any(name in sample.figures for sample in samples))
    return CellView(row, summary, names, tuple(_lines(samples, summary, names)))


def _lines(samples: Sequence[Sample], summary: CellSummary, names: Sequence[str]) -> Iterator[SampleLine]:
    counted_rounds = {number for rounds in summary.by_round.values() for number in rounds}
    last = {sample.round: sample.position for sample in samples if sample.counted}
    for sample in samples:
        state = _state(sample, sample.round in counted_rounds, last)
        values = tuple(sample.figures.get(name) for name in names)
        yield SampleLine(sample.round, sample.position, state, state == "counted", values)


def _state(sample: Sample, has_figure: bool, last: Mapping[int, int]) -> str:
    if sample.failure is not None:
        return f"{sample.failure.kind}: {sample.failure.reason}"
    if sample.unsettled:
        return "not counted: the machine was not at rest, or a warm read not warm"
    if not has_figure:
        return "not counted: its read did not pass"
    return "counted" if last[sample.round] == sample.position else "not counted: measured again later"
