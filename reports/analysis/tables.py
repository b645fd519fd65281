"""Arrange a run's samples as tables, one for each data set and set of conditions. Every report shows these tables.

A table has the columns of the operations that were measured on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from msgspec.structs import asdict

from bench_runner.data_kinds import kind_of_target
from bench_runner.results.information import SAVE
from bench_runner.results.records import Cell, Conditions, Failure, Run
from bench_runner.results.statistics import (
    FEWEST_ROUNDS,
    CellSummary,
    Interval,
    Ratio,
    ranking,
    raw_io_cell,
    smallest_shown,
    summarise,
)
from bench_runner.variants import OperationName, Variant, operation_name_of, variant_of
from reports.analysis.columns import Column, Columns, Role, columns_of
from reports.analysis.labels import short_labels
from reports.analysis.units import KILOBYTES, MEGABYTES, MILLISECONDS, SECONDS, Unit

EMPTY, EMPTY_FACTOR = "empty_ns", 10
"""For a time below EMPTY_FACTOR times the time of an empty call, reports show this limit with '<' instead (rule 19 in
docs/method.md)."""


@dataclass(frozen=True, eq=False)
class Row:
    """One variant in a table, with a summary of each operation that was tried."""

    variant: Variant
    label: str
    cells: Mapping[OperationName, CellSummary]
    """Summaries by operation, in the order of the table's columns."""

    def interval(self, column: Column) -> Interval | None:
        """Return the figure of a column, None if nothing was counted."""
        summary = self.cells.get(column.operation)
        return summary.figures.get(column.figure) if summary else None

    @property
    def rounds(self) -> tuple[int, ...]:
        """Number of counted rounds of each operation, in the order of `cells`."""
        return tuple(summary.rounds for summary in self.cells.values())

    def fallback(self, operation: OperationName) -> str:
        """Return which fallback replaces a call that the library lacks, such as 'read-all'. Return '' if the library
        has the call, or if the operation was not tried."""
        return self.cells[operation].fallback if operation in self.cells else ""

    def cached(self, operation: OperationName) -> bool:
        """Return whether the library answered repeated calls of an operation from its own memory."""
        return operation in self.cells and self.cells[operation].cached

    def wrong(self, operation: OperationName) -> bool:
        """Return whether a counted round gave a wrong answer."""
        return operation in self.cells and self.cells[operation].wrong

    @property
    def measured(self) -> bool:
        """Whether at least one round was counted."""
        return any(summary.rounds for summary in self.cells.values())

    @property
    def fidelity(self) -> str | None:
        """'exact' or 'declared loss', as found by the checks of the data that was read. None if no check succeeded."""
        verdicts = [summary.fidelity for summary in self.cells.values() if summary.fidelity]
        return max(verdicts, key=lambda verdict: verdict != "exact", default=None)

    @property
    def losses(self) -> tuple[str, ...]:
        """The declared losses that occurred when this variant's copies were read back."""
        return tuple(dict.fromkeys(loss for summary in self.cells.values() for loss in summary.losses))

    @property
    def failures(self) -> dict[Failure, tuple[OperationName, ...]]:
        """Each failure with the operations that the failure stopped. A failure that only repeats another failure is
        left out."""
        found: dict[Failure, tuple[OperationName, ...]] = {}
        for operation, summary in self.cells.items():
            for failure in summary.failures:
                found[failure] = (*found.get(failure, ()), operation)
        return {
            failure: operations
            for failure, operations in found.items()
            if not any(other is not failure and _repeats(failure, other) for other in found)
        }


def _repeats(failure: Failure, other: Failure) -> bool:
    """Return whether `failure` is only a consequence of `other`. This is so if its reason is longer and ends with the
    reason of `other`."""
    return len(failure.reason) > len(other.reason) and failure.reason.endswith(other.reason)


@dataclass(frozen=True)
class Counted:
    """How many variants were measured, and how many of these have a figure. A variant without a counted round, for
    example because the machine was busy, has no figure. Refused and failed variants are in neither number."""

    having: int
    measured: int

    @property
    def too_few(self) -> bool:
        """Whether most measured variants have no figure. Then no variant is ranked."""
        return 2 * self.having < self.measured


@dataclass(frozen=True)
class Table:
    """All variants on one data set under one set of conditions on one machine."""

    suite: str
    dataset: OperationName
    data_rows: int
    conditions: Conditions
    machine: str
    columns: Columns
    rows: tuple[Row, ...]
    """Rows sorted by the leading column (normally read time), or by save time if a row has no figure there. Variants
    that are not ranked follow, then raw I/O, then rows without figures."""
    least_bytes: int
    """The smallest memory in bytes that the measurement can distinguish from 0 (rule 13 in docs/method.md)."""

    @cached_property
    def _ranks(self) -> Mapping[Column, Mapping[Variant, Ratio]]:
        return {column: self._ranked(column) for column in self.columns}

    def ranks(self, column: Column) -> Mapping[Variant, Ratio]:
        """Return the ratio to the best for each ranked variant of a column. The best variant comes first. The result is
        empty if the table has no such column, or if most variants have no figure there: the best may be one of
        them."""
        return self._ranks.get(column, {})

    def least(self, column: Column) -> float:
        """Return the smallest value that is a valid figure in a column. A smaller memory peak cannot be distinguished
        from 0. For a shorter time, reading the clock would take over a tenth (rules 13 and 19 in docs/method.md)."""
        if column.is_memory:
            return self.least_bytes
        if column.role is not Role.TIME:
            return 0
        # Only short calls are considered, because reading the clock takes a negligible share of longer calls.
        found = [row.cells[column.operation].figures for row in self.rows if column.operation in row.cells]
        clocked = [(each[column.figure].median, each[EMPTY].median) for each in found if EMPTY in each]
        return EMPTY_FACTOR * max((empty for wall, empty in clocked if wall < EMPTY_FACTOR * empty), default=0)

    def _ranked(self, column: Column) -> dict[Variant, Ratio]:
        if self.counted(column).too_few:
            return {}
        summaries = [row.cells[column.operation] for row in self.rows if column.operation in row.cells]
        least = self.least(column)
        return {cell.variant: ratio for cell, ratio in ranking(summaries, column.figure, least=least).items()}

    def counted(self, column: Column) -> Counted:
        """Return how many rankable variants were measured in a column, and how many of these have a figure."""
        name = column.operation
        cells = [row.cells[name] for row in self.rows if name in row.cells and row.cells[name].is_ranked]
        having = sum(column.figure in cell.figures for cell in cells)
        lacking = sum(column.figure not in cell.figures and cell.uncounted > 0 for cell in cells)
        return Counted(having, having + lacking)

    def mark(self, column: Column, variant: Variant) -> str:
        """Return the mark of a variant in a column: '*' for the best, '=' for a variant that is tied with the best.
        Return '' for all others, and if there is no verdict."""
        ranks = self.ranks(column)
        ratio = ranks.get(variant)
        if ratio is None or not ratio.tied:
            return ""
        return "*" if variant == next(iter(ranks)) else "="

    @property
    def amount(self) -> str:
        """The amount of data, such as '1,000,000 rows', '50,000 images' or '20,000 documents'."""
        return f"{self.data_rows:,} {kind_of_target(self.conditions.target).counted}"

    @property
    def few_rounds(self) -> bool:
        """Whether all operations have too few rounds for a verdict."""
        return all(number < FEWEST_ROUNDS for row in self.rows for number in row.rounds)


def amount_text(run: Run, table: Table) -> str:
    """Return the amount of data. For a sample, the amount of the whole data set is included: 'a sample of 1,000,000 of
    12,345,678 rows'."""
    about = run.info.datasets.get(table.dataset)
    if about is None or about.whole_rows is None:
        return table.amount
    return f"a sample of {table.data_rows:,} of {about.whole_rows:,} {kind_of_target(table.conditions.target).counted}"


def table_cell(cell: Cell) -> Cell:
    """Return a cell without variant and operation. The result is the same for all cells of a table, so the result
    identifies the table."""
    return replace(cell, variant=variant_of(""), operation=operation_name_of(""))


def tables(run: Run, summaries: Mapping[Cell, CellSummary] | None = None) -> list[Table]:
    """Return the tables of a run, sorted by suite, machine, data set (in the run's order) and track (group of
    settings)."""
    summaries = summarise(run.samples) if summaries is None else summaries
    yardsticks: dict[Cell, CellSummary] = {}
    groups: dict[Cell, list[CellSummary]] = {}
    for cell, summary in summaries.items():
        if cell.variant.is_raw_io:
            yardsticks[raw_io_cell(cell)] = summary
        else:
            groups.setdefault(table_cell(cell), []).append(summary)
    operations = tuple(dict.fromkeys(cell.operation for cell in summaries))
    least = smallest_shown(run.info)
    found = []
    for group in groups.values():
        tried = {summary.cell.operation for summary in group}
        columns = columns_of({name: run.info.operation(name) for name in operations if name in tried})
        found.append(_table(group, columns, yardsticks, least))
    places = {name: place for place, name in enumerate(run.info.datasets)}
    tracks = {"plain": 0, "default": 1, "equal": 2, "codecs": 3}
    found.sort(
        key=lambda table: (
            table.suite,
            table.machine,
            places.get(table.dataset, len(places)),
            tracks.get(table.conditions.track, len(tracks)),
        )
    )
    return found


def _table(
    group: Sequence[CellSummary], columns: Columns, yardsticks: Mapping[Cell, CellSummary], least_bytes: int
) -> Table:
    by_variant: dict[Variant, dict[OperationName, CellSummary]] = {}
    for summary in group:
        by_variant.setdefault(summary.cell.variant, {})[summary.cell.operation] = summary
    for cell in dict.fromkeys(raw_io_cell(summary.cell) for summary in group):
        if cell in yardsticks:
            yardstick = yardsticks[cell]
            by_variant.setdefault(yardstick.cell.variant, {})[cell.operation] = yardstick
    labels = short_labels(by_variant)
    rows = [
        Row(variant, labels[variant], {name: cells[name] for name in columns.operations if name in cells})
        for variant, cells in by_variant.items()
    ]
    first = group[0].cell
    return Table(
        first.suite,
        first.dataset,
        first.rows,
        first.conditions,
        first.machine,
        columns,
        tuple(sorted(rows, key=lambda row: _order(row, columns))),
        least_bytes,
    )


def _order(row: Row, columns: Columns) -> tuple[bool, bool, bool, float, str]:
    times = sorted(columns.times, key=lambda time: (time != columns.leading, time.operation != SAVE))
    shown = next((interval for time in times if (interval := row.interval(time))), None)
    median = shown.median if shown else float("inf")
    return not row.measured, row.variant.is_raw_io, row.variant.is_apart, median, row.variant


def value_text(table: Table, row: Row, column: Column, unit: Unit) -> str | None:
    """Return a figure without its unit. A figure below N, the smallest valid figure, is '<N'. Return None if there is
    no figure."""
    interval = row.interval(column)
    if interval is None:
        return None
    if interval.median < table.least(column):
        return f"<{unit.text(table.least(column))}"
    return unit.text(interval.median)


def unit_for(table: Table, figure: str) -> Unit:
    """Return a unit for `figure` in which the smallest value of this figure in the table is still readable."""
    small, large, limit = (MILLISECONDS, SECONDS, 1e8) if figure.endswith("_ns") else (KILOBYTES, MEGABYTES, 1e6)
    medians = [
        summary.figures[figure].median
        for row in table.rows
        for summary in row.cells.values()
        if figure in summary.figures and not row.variant.is_raw_io and not row.variant.is_apart
    ]
    return small if medians and min(medians) < limit else large


def unit_of(table: Table, column: Column) -> Unit:
    """Return the unit of a column. The unit of memory is always MB."""
    return MEGABYTES if column.is_memory else unit_for(table, column.figure)


def distinguishing_names(found: Sequence[Table]) -> dict[int, str]:
    """Return a unique name for each table, by the table's index. A name has the data set, the track, and whatever else
    distinguishes the tables."""
    names = {place: [table.dataset, table.conditions.track] for place, table in enumerate(found)}
    usual = ("dataset", "track")
    facts = [{"suite": table.suite, "machine": table.machine, **asdict(table.conditions)} for table in found]
    sizes = {(table.dataset, table.data_rows) for table in found}
    for place, table in enumerate(found):
        if len({rows for name, rows in sizes if name == table.dataset}) > 1:
            names[place].append(f"{table.data_rows}rows")
    for key in facts[0] if facts else ():
        if key in usual or len({fact[key] for fact in facts}) == 1:
            continue
        for place, fact in enumerate(facts):
            names[place].append(fact[key])
    return {place: "-".join(parts) for place, parts in names.items()}
