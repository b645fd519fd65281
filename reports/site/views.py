"""Describe runs and tables for the site's pages: every figure as printed, with its mark and address.

Statistics and wording come from reports.analysis. This module adds addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, urlencode

from bench_runner.conditions import CONDITIONS, conditions_text
from bench_runner.results.information import MachineInfo
from bench_runner.results.records import Cell, Run, Sample
from bench_runner.results.statistics import FEWEST_ROUNDS, Interval, Ratio
from bench_runner.variants import Variant
from reports.analysis.bands import BANDS, band_of
from reports.analysis.columns import Column, Columns
from reports.analysis.sections import Contents
from reports.analysis.tables import Row, Table, distinguishing_names, unit_of, value_text
from reports.analysis.units import MILLISECONDS, SECONDS, Unit, spread_text
from reports.analysis.words import (
    CACHED_MEANING,
    FALLBACK_MEANING,
    LONG_NS,
    fallback_mark,
    has_cached,
    has_fallbacks,
    stage_text,
    why_none,
)
from reports.site.addresses import Slugs, suite_page

BAND_NAMES = ("best", "near", "some", "far", "farthest")
"""A name for each band. A band is a range of ratios to the best figure. Each band has its own colour."""
APART, NONE = "apart", "none"
"""Names of the bands for two kinds of figures: those that are not ranked, and those that are missing."""


@dataclass(frozen=True, eq=False)
class Place:
    """A run with its addresses in the site."""

    run: Run
    slug: str
    files: str
    """The folder of the run's files, relative to the site's folder."""
    processor: str = ""
    """Processor of the machine. It is set only if other machines have the same name but another processor, as in a
    cloud."""

    @cached_property
    def contents(self) -> Contents:
        """The parts from which reports of the run are made."""
        return Contents(self.run)

    @cached_property
    def tables(self) -> tuple[TableView, ...]:
        """The run's tables, each with a name that is unique within the run."""
        found = self.contents.tables
        names, slugs = distinguishing_names(found), Slugs()
        return tuple(TableView(self, table, slugs.of(names[number])) for number, table in enumerate(found))

    @property
    def name(self) -> str:
        """The run's id, or the name of its folder."""
        return self.run.info.id or self.run.folder.name

    @property
    def title(self) -> str:
        """A title that distinguishes the run from other runs: name, day, machine, version."""
        info = self.run.info
        parts = [
            (info.started or "")[:10],
            f"on {_machine(info.machine)}" if info.machine.name else "",
            f"version {info.commit[:7]}" if info.commit else "",
        ]
        told = ", ".join(part for part in parts if part)
        return f"{self.name} ({told})" if told else self.name

    @cached_property
    def suites(self) -> tuple[str, ...]:
        """The suites of the run's tables."""
        return tuple(dict.fromkeys(view.table.suite for view in self.tables))

    def address_of(self, variant: Variant, suite: str) -> str:
        """Return the address of a variant's samples, preferably in a table of `suite`."""
        rows = [row for view in self.tables for row in view.rows if row.row.variant == variant]
        rows.sort(key=lambda row: row.view.table.suite != suite)
        return rows[0].address()

    @cached_property
    def samples(self) -> Mapping[Cell, Sequence[Sample]]:
        """Every execution of each cell (operation, data set, variant and conditions) in stored order. Pilot rounds are
        left out."""
        found: dict[Cell, list[Sample]] = {}
        for sample in self.run.samples:
            if sample.round > 0:
                found.setdefault(sample.cell, []).append(sample)
        return found


def places(runs: Iterable[Run], files_in: str = "") -> list[Place]:
    """Return the runs with their addresses, in the given order.

    `files_in` names the folder of the site that already contains the runs' folders. If `files_in` is empty, the files
    of the runs are copied into the site.
    """
    slugs = Slugs()
    named = [(run, slugs.of(run.info.id or run.folder.name)) for run in runs]
    machines = {(run.info.machine.name, run.info.machine.cpu) for run, _ in named}
    alike = [name for name, _ in machines]
    return [
        Place(
            run,
            name,
            f"{files_in}/{quote(run.folder.name)}" if files_in else f"data/{name}",
            run.info.machine.cpu or "" if alike.count(run.info.machine.name) > 1 else "",
        )
        for run, name in named
    ]


@dataclass(frozen=True)
class Shown:
    """A figure as printed, or the reason why there is none."""

    text: str
    """The figure with its unit, such as '52.3 ms', or a word for why it is missing."""
    spread: str
    mark: str
    """'*' for the best figure, '=' for a figure that is tied with the best. Two marks mean that the figure is not
    ranked: FALLBACK (the library has no call) and CACHED (answered from the library's own memory)."""
    ratio: str
    """Ratio to the best, such as '1.13'; '' if the figure is not ranked."""
    band: str
    address: str
    """Address of the figure's samples, relative to the site's folder."""
    words: str
    """The figure in words, with the title of its column."""

    @property
    def leads(self) -> bool:
        """Whether the figure is the best, or tied with the best."""
        return self.mark in ("*", "=")

    @property
    def measured(self) -> bool:
        """Whether there is a figure."""
        return self.band != NONE


@dataclass(frozen=True)
class Best:
    """The best variant in one column, the variants tied with it, and the ratio of the next variant."""

    column: Column
    label: str
    figure: Shown
    tied: tuple[str, ...]
    next: str
    """The next variant with its ratio: 'csv, 1.31 times (1.28 to 1.34)'; '' if there is none."""
    verdict: bool
    """Whether there are enough rounds for a verdict."""


@dataclass(frozen=True, eq=False)
class RowView:
    """One variant in one table."""

    view: TableView
    row: Row
    slug: str

    @property
    def format(self) -> str:
        """Name of the variant's format."""
        return self.row.variant.format_name

    @property
    def title(self) -> str:
        """Title of the variant's format."""
        described = self.view.place.run.info.variants.get(self.row.variant)
        return described.title if described and described.title else self.format

    @property
    def maturity(self) -> str:
        """Maturity of the variant's format with the reason: 'young: one implementation'; '' if unknown."""
        described = self.view.place.run.info.variants.get(self.row.variant)
        told = described.maturity if described else None
        return f"{stage_text(told)}: {told.reason}" if told else ""

    @property
    def is_raw_io(self) -> bool:
        """Whether the variant is raw I/O."""
        return self.row.variant.is_raw_io

    @property
    def is_apart(self) -> bool:
        """Whether the variant is never ranked with the others."""
        return self.row.variant.is_apart

    def address(self, operation: str = "") -> str:
        """Return the address of the samples of `operation`. If `operation` was not run, return the address for the
        row's first operation."""
        known = operation if operation in self.row.cells else next(iter(self.row.cells))
        return f"{self.view.samples_address}#{self.anchor(known)}"

    def anchor(self, operation: str) -> str:
        """Return the anchor of an operation's samples, that is the part of the address after '#'."""
        return f"{self.view.slug_of[operation]}-{self.slug}"

    @cached_property
    def figures(self) -> Mapping[Column, Shown]:
        """One figure for each column of the variant's table."""
        return {column: self.view.shown(self, column) for column in self.view.columns}


@dataclass(frozen=True, eq=False)
class TableView:
    """One table: all variants on one data set under one set of conditions in one run."""

    place: Place
    table: Table
    name: str

    @property
    def id(self) -> str:
        """Name of the table in addresses."""
        return f"{self.place.slug}-{self.name}"

    @property
    def columns(self) -> Columns:
        """The columns of the table."""
        return self.table.columns

    @cached_property
    def slug_of(self) -> Mapping[str, str]:
        """The part of an address (slug) that stands for each operation."""
        slugs = Slugs()
        return {name: slugs.of(name) for name in self.columns.operations}

    @property
    def samples_address(self) -> str:
        """Address of the page with the table's samples."""
        return f"samples/{self.id}.html"

    @property
    def page(self) -> str:
        """Address of the page of the table's suite."""
        return suite_page(self.table.suite)

    @cached_property
    def facets(self) -> Mapping[str, str]:
        """The values by which a reader selects the table on a page."""
        table = self.table
        return {
            "suite": table.suite,
            "run": self.place.slug,
            "machine": f"{table.machine} ({self.place.processor})" if self.place.processor else table.machine,
            **{each.name: getattr(self.table.conditions, each.name) or each.absent for each in CONDITIONS},
            "dataset": table.dataset,
            "amount": table.amount,
        }

    @property
    def choice(self) -> str:
        """The part of an address after '#' that selects the table on the page of its suite."""
        return urlencode({key: value for key, value in self.facets.items() if key not in ("suite", "amount")})

    @property
    def title(self) -> str:
        """Data set and amount: 'eq, 1,000,000 rows'."""
        return f"{self.table.dataset}, {self.table.amount}"

    @property
    def data_title(self) -> str:
        """Title of the data set. It is empty if the run recorded no title, or one that equals the name."""
        described = self.place.run.info.datasets.get(self.table.dataset)
        return described.title if described and described.title != self.table.dataset else ""

    @property
    def conditions(self) -> str:
        """The conditions in words."""
        return conditions_text(self.table.conditions)

    @cached_property
    def rows(self) -> tuple[RowView, ...]:
        """Rows in the order of the table."""
        slugs = Slugs()
        return tuple(RowView(self, row, slugs.of(row.variant)) for row in self.table.rows)

    @cached_property
    def formats(self) -> tuple[str, ...]:
        """The formats that have a row, without raw I/O."""
        return tuple(sorted({row.format for row in self.rows if not row.is_raw_io}))

    @property
    def fallback_meaning(self) -> str:
        """Meaning of the marks for figures that are not ranked; '' if no figure has such a mark."""
        meanings = {FALLBACK_MEANING: has_fallbacks(self.table), CACHED_MEANING: has_cached(self.table)}
        return ". ".join(meaning for meaning, seen in meanings.items() if seen)

    def unit(self, column: Column) -> Unit:
        """Return the unit of a column."""
        return unit_of(self.table, column)

    def shown(self, row: RowView, column: Column) -> Shown:
        """Return one figure of one row."""
        interval = row.row.interval(column)
        if interval is None:
            why = why_none(row.row, column)
            return Shown(why, "", "", "", NONE, row.address(column.operation), f"{column.title}: {why}")
        text = self.text(row, column, interval)
        ratio = self.table.ranks(column).get(row.row.variant)
        spread = spread_text(interval)
        mark = self.table.mark(column, row.row.variant)
        return Shown(
            text,
            spread,
            mark + fallback_mark(row.row, column),
            ratio_text(ratio.ratio) if ratio else "",
            _band(ratio),
            row.address(column.operation),
            _words(row.row, column, text, spread, mark, ratio, interval),
        )

    def text(self, row: RowView, column: Column, interval: Interval) -> str:
        """Return a figure with its unit. Long times are in seconds, even in a column of milliseconds."""
        unit = self.unit(column)
        if unit is MILLISECONDS and interval.median >= LONG_NS:
            unit = SECONDS
        return f"{value_text(self.table, row.row, column, unit)} {unit.name}"

    @cached_property
    def bests(self) -> tuple[Best, ...]:
        """The best variants of each column that has a ranked figure. Memory is shown only for the main operations, to
        save space."""
        rows = {row.row.variant: row for row in self.rows}
        found = []
        for column in self.columns:
            ranks = self.table.ranks(column)
            if not ranks or (column.is_memory and column.operation not in self.table.columns.main):
                continue
            first = next(iter(ranks))
            tied = [rows[name].row.label for name in ranks if self.table.mark(column, name) == "="]
            others = [name for name in ranks if name != first and not self.table.mark(column, name)]
            following = ""
            if others:
                ratio = ranks[others[0]]
                following = f"{rows[others[0]].row.label}, {ratio_words(ratio)}"
            verdict = ranks[first].tied is not None
            shown = rows[first].figures[column]
            found.append(Best(column, rows[first].row.label, shown, tuple(tied), following, verdict))
        return tuple(found)


def ratio_text(ratio: float) -> str:
    """Return a ratio to the best: '1', '1.13', '12.4', '1,204'."""
    if ratio == 1:
        return "1"
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def ratio_words(ratio: Ratio) -> str:
    """Return a ratio in words: '1.31 times (1.28 to 1.34)', or without the interval if there is none."""
    told = f"{ratio_text(ratio.ratio)} times"
    if ratio.low is None or ratio.high is None:
        return told
    return f"{told} ({ratio.low:.3g} to {ratio.high:.3g})"


def _machine(machine: MachineInfo) -> str:
    """Return the machine's name with its processor and cores. The name alone means nothing to other readers."""
    told = [machine.cpu or "", f"{machine.cores} cores" if machine.cores else ""]
    about = ", ".join(part for part in told if part)
    return f"{machine.name} ({about})" if about else machine.name


def _band(ratio: Ratio | None) -> str:
    if ratio is None:
        return APART
    return BAND_NAMES[band_of(ratio)]


def band_meanings(views: Iterable[TableView]) -> list[tuple[str, str]]:
    """Return (name, meaning) of each colour in these tables. The colour for the best comes first."""
    meanings = [(name, meaning) for name, (_, _, meaning) in zip(BAND_NAMES, BANDS, strict=True)]
    if not all(best.verdict for view in views for best in view.bests):
        # Sizes have a verdict from one round on, so such a page may have both.
        meanings[0] = (BAND_NAMES[0], f"{BANDS[0][2]}; under {FEWEST_ROUNDS} rounds: lowest, without a verdict")
    return [*meanings, (APART, "not ranked")]


def _words(row: Row, column: Column, text: str, spread: str, mark: str, ratio: Ratio | None, interval: Interval) -> str:
    rounds = f"{interval.rounds} round{'s' * (interval.rounds > 1)}"
    told = f"{row.label}, {column.title} {text}{f' {spread}' if spread else ''}, {rounds}"
    if row.fallback(column.operation):
        return f"{told}; fallback that reads everything: not ranked"
    if row.cached(column.operation):
        return f"{told}; from the library's memory: not ranked"
    if ratio is None:
        return f"{told}; not ranked"
    if mark:
        return f"{told}; {'the best' if mark == '*' else 'tied with the best'}"
    return f"{told}; {ratio_words(ratio)} the best"
