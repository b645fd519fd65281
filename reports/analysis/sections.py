"""What a report consists of: one list of sections, from which terminal, PDF and site are all made.

A new section is an entry here and a renderer in each output; an output that does not show one says where it is shown,
or why not. This module knows when a section has something to say, and nothing of how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from bench_runner.results.records import Cell, Run
from bench_runner.results.statistics import CellSummary, summarise
from reports.analysis import engines
from reports.analysis.access.handles import has_handles
from reports.analysis.access.loaders import has_loaders
from reports.analysis.access.roofline import has_roofline
from reports.analysis.access.uses import has_uses
from reports.analysis.codecs import has_codecs
from reports.analysis.cold_start import ColdStarts, cold_starts
from reports.analysis.documents.stores import has_documents
from reports.analysis.fidelity import Matrix, matrices
from reports.analysis.means import Means, means_of
from reports.analysis.near_storage.beside import has_near_storage
from reports.analysis.near_storage.charts import throughput_charts
from reports.analysis.near_storage.curves import has_curves
from reports.analysis.near_storage.throughput import Series, series_of
from reports.analysis.remarks import Remark, remarks
from reports.analysis.tables import Table, tables
from reports.analysis.varied.charts import Chart
from reports.analysis.varied.lines import charts_of


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a report of one run is made from, each part computed when it is asked for."""

    run: Run

    @cached_property
    def summaries(self) -> Mapping[Cell, CellSummary]:
        """The summary of each cell."""
        return summarise(self.run.samples)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """In the order in which they are shown."""
        return tuple(tables(self.run, self.summaries))

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """Over the data sets of tables that differ in them alone."""
        return tuple(means_of(self.tables))

    @cached_property
    def lines(self) -> tuple[Chart, ...]:
        """What was measured at several values of one parameter."""
        return charts_of(self.run, self.tables)

    @cached_property
    def throughput(self) -> tuple[Series, ...]:
        """By the share of row groups that a query has to read."""
        return series_of(self.summaries)

    @cached_property
    def throughput_lines(self) -> tuple[Chart, ...]:
        """The same as charts."""
        return throughput_charts(self.throughput, self.summaries)

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        """What each variant does to each kind of column."""
        return tuple(matrices(self.run))

    @cached_property
    def cold_starts(self) -> ColdStarts:
        """What each variant costs before its first call has returned."""
        return cold_starts(self.run)

    @cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """What the run says against itself."""
        return tuple(remarks(self.run, self.summaries))


@dataclass(frozen=True)
class Section:
    """One part of a report under its title: about one table or, where `of_table` is None, about the whole run."""

    name: str
    title: str
    of_table: Callable[[Table], bool] | None = None
    """Whether a table has something to say in it."""
    of_run: Callable[[Contents], bool] | None = None
    """Whether a run has."""
    leads: bool = False
    """Whether it stands before the tables, where pages are read from the top: it answers the suite's question."""


TABLE_SECTIONS = (
    Section("tables", "times, size and memory", of_table=lambda table: True),
    Section("further operations", "further operations", of_table=lambda table: bool(table.columns.further)),
    Section("loaders", "training loops: rows a second, and how shuffled", of_table=has_loaders),
    Section("uses", "which format for which use", of_table=has_uses),
    Section("handles", "copies that stay open: opening, the first call, and those after it", of_table=has_handles),
    Section("roofline", "how near to the device, and how much is read for what is given", of_table=has_roofline),
    Section(
        "near storage",
        "near the storage: techniques, services, the wire, metadata and row groups",
        of_table=has_near_storage,
    ),
    Section("documents", "documents: ingestion, merges, indexes", of_table=has_documents),
    Section("codecs", "what each codec adds to its format without one", of_table=has_codecs),
    Section("calls", "how much is the format, and how much is the call", of_table=engines.has_calls),
)
"""Shown for each table, in this order."""
RUN_SECTIONS = (
    Section(
        "throughput",
        "throughput over the share of row groups: bytes of the whole stored copy over the time of a query",
        of_run=lambda contents: bool(contents.throughput_lines),
        leads=True,
    ),
    Section(
        "curves",
        "throughput as a function of selectivity, and how often a month all could be read",
        of_run=lambda contents: has_curves(contents.throughput),
        leads=True,
    ),
    Section("lines", "over one parameter, and where the winner changes", of_run=lambda contents: bool(contents.lines)),
    Section("means", "how many times the best, geometric mean", of_run=lambda contents: bool(contents.means)),
    Section("fidelity", "what comes back", of_run=lambda contents: bool(contents.matrices)),
    Section(
        "cold start",
        "cold start, and in no figure above: loading the libraries, then the first call on few rows or images",
        of_run=lambda contents: bool(contents.cold_starts.rows),
    ),
    Section("legend", "how to read the figures", of_run=lambda contents: bool(contents.tables)),
    Section(
        "remarks",
        "what to be careful of",
        of_run=lambda contents: bool(contents.remarks) or not contents.tables,
    ),
)
"""Shown once, behind all tables."""
SECTIONS = (*TABLE_SECTIONS, *RUN_SECTIONS)
TITLES = {section.name: section.title for section in SECTIONS}


@dataclass(frozen=True)
class Elsewhere:
    """Stands for a renderer where an output does not show a section in its place: where it does, or why not."""

    reason: str


def sections_of(table: Table) -> list[Section]:
    """The sections that a table has something to say in."""
    return [section for section in TABLE_SECTIONS if section.of_table and section.of_table(table)]


def sections_of_run(contents: Contents) -> list[Section]:
    """The sections about the whole run that have something to say."""
    return [section for section in RUN_SECTIONS if section.of_run and section.of_run(contents)]
