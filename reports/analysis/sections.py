"""List the sections of a report. Terminal, PDF and site are all made from this list.

A section that consists of `Figures` (tables of numbers) needs only an entry in this list, because each output has one
renderer for all such sections. Every other section needs its own renderer in each output. If an output has no renderer
for a section, an `Elsewhere` gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from bench_runner.results.records import Cell, Run
from bench_runner.results.statistics import CellSummary, summarise
from reports.analysis import engines
from reports.analysis.access.handles import handles_of, has_handles
from reports.analysis.access.loaders import has_loaders, loaders_of
from reports.analysis.access.roofline import has_roofline, roofline_of
from reports.analysis.access.uses import has_uses
from reports.analysis.codecs import has_codecs
from reports.analysis.cold_start import cold_starts
from reports.analysis.documents.stores import documents_of, has_documents
from reports.analysis.fidelity import Matrix, matrices
from reports.analysis.figures import Figures
from reports.analysis.means import Means, means_of
from reports.analysis.near_storage.charts import throughput_charts
from reports.analysis.near_storage.curves import curves_of, has_curves
from reports.analysis.near_storage.side_costs import has_near_storage, near_storage_of
from reports.analysis.near_storage.throughput import Series, series_of
from reports.analysis.parallel import has_parallel, parallel_of
from reports.analysis.remarks import Remark, remarks
from reports.analysis.tables import Table, tables
from reports.analysis.varied.charts import Chart
from reports.analysis.varied.lines import charts_of


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything from which the report of one run is made. Each part is computed on first use."""

    run: Run

    @cached_property
    def summaries(self) -> Mapping[Cell, CellSummary]:
        """The summary of each cell, that is of each operation, data set, variant and conditions."""
        return summarise(self.run.samples)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables in display order."""
        return tuple(tables(self.run, self.summaries))

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """Means over tables that differ only in their data set."""
        return tuple(means_of(self.tables))

    @cached_property
    def lines(self) -> tuple[Chart, ...]:
        """Charts of measurements at several values of one parameter."""
        return charts_of(self.run, self.tables)

    @cached_property
    def throughput(self) -> tuple[Series, ...]:
        """Throughput by the share of row groups that a query has to read."""
        return series_of(self.summaries)

    @cached_property
    def throughput_lines(self) -> tuple[Chart, ...]:
        """The throughput as charts."""
        return throughput_charts(self.throughput, self.summaries)

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        """Matrices that show what each variant does to each kind of column."""
        return tuple(matrices(self.run))

    @cached_property
    def cold_starts(self) -> tuple[Figures, ...]:
        """The costs of each variant until its first call has returned."""
        return tuple(cold_starts(self.run))

    @cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """What limits the trust in the run."""
        return tuple(remarks(self.run, self.summaries))


@dataclass(frozen=True)
class Section:
    """One part of a report with its title."""

    name: str
    title: str

    @property
    def short_title(self) -> str:
        """The title up to its first colon or comma."""
        return re.split("[:,]", self.title)[0]


@dataclass(frozen=True)
class TableSection(Section):
    """A section about one table."""

    shown: Callable[[Table], bool]
    """Function that returns whether a table has content for this section."""
    figures: Callable[[Run, Table], Iterable[Figures]] | None = None
    """Function that returns the section's content. None if each output has a separate renderer for the section."""


@dataclass(frozen=True)
class RunSection(Section):
    """A section about a whole run."""

    shown: Callable[[Contents], bool]
    """Function that returns whether a run has content for this section."""
    figures: Callable[[Contents], Iterable[Figures]] | None = None
    """Function that returns the section's content. None if each output has a separate renderer for the section."""
    leads: bool = False
    """Whether the PDF and the site show the section before the tables, because the section answers the suite's
    question."""


TABLE_SECTIONS = (
    TableSection("tables", "times, size and memory", lambda table: True),
    TableSection("further operations", "further operations", lambda table: bool(table.columns.listed)),
    TableSection(
        "loaders", "training loops: rows per second, and how well rows are shuffled", has_loaders, figures=loaders_of
    ),
    TableSection("uses", "which format for which use", has_uses),
    TableSection("handles", "open copies: time to open, first call, later calls", has_handles, figures=handles_of),
    TableSection(
        "roofline",
        "share of the device's speed, and bytes read for each byte of the result",
        has_roofline,
        figures=roofline_of,
    ),
    TableSection(
        "parallel",
        "tables in partitions: whether several processes are faster than one, and what they cost",
        has_parallel,
        figures=parallel_of,
    ),
    TableSection(
        "near storage",
        "near-storage reading: techniques, services, network, metadata and row groups",
        has_near_storage,
        figures=near_storage_of,
    ),
    TableSection("documents", "documents: ingestion, merges, indexes", has_documents, figures=documents_of),
    TableSection("codecs", "codecs compared with the same format without one", has_codecs),
    TableSection("calls", "how much depends on the format, and how much on the call", engines.has_calls),
)
"""Sections that are shown for each table, in this order."""
RUN_SECTIONS = (
    RunSection(
        "throughput",
        "throughput by the share of row groups read: size of the stored copy / time of the query",
        lambda contents: bool(contents.throughput_lines),
        leads=True,
    ),
    RunSection(
        "curves",
        "throughput as a function of selectivity, and how often a month all data could be read",
        lambda contents: has_curves(contents.throughput),
        figures=lambda contents: curves_of(contents.throughput),
        leads=True,
    ),
    RunSection("lines", "effect of one parameter, and where the winner changes", lambda contents: bool(contents.lines)),
    RunSection("means", "ratio to the best, geometric mean", lambda contents: bool(contents.means)),
    RunSection("fidelity", "fidelity: what comes back", lambda contents: bool(contents.matrices)),
    RunSection(
        "cold start",
        "cold start, not included above: importing the libraries, then the first call on few rows or images",
        lambda contents: bool(contents.cold_starts),
        figures=lambda contents: contents.cold_starts,
    ),
    RunSection("legend", "how to read the figures", lambda contents: bool(contents.tables)),
    RunSection("remarks", "warnings and remarks", lambda contents: bool(contents.remarks) or not contents.tables),
)
"""Sections that are shown once. They come after all tables, except that the PDF and the site show sections with `leads`
before the tables."""
SECTIONS: tuple[Section, ...] = (*TABLE_SECTIONS, *RUN_SECTIONS)
TITLES = {section.name: section.title for section in SECTIONS}


@dataclass(frozen=True)
class Elsewhere:
    """Replaces the renderer of a section that an output does not show. `reason` states where the section is shown
    instead, or why it is not shown."""

    reason: str


def sections_of(table: Table) -> list[TableSection]:
    """Return the sections that a table has content for."""
    return [section for section in TABLE_SECTIONS if section.shown(table)]


def sections_of_run(contents: Contents) -> list[RunSection]:
    """Return the sections about the whole run that have content."""
    return [section for section in RUN_SECTIONS if section.shown(contents)]
