"""Keep the tables of a run up to date while the run is measured.

The figures use the same statistics as the tables of a finished run. After a new sample, only the figures that depend on
this sample are computed again. An update therefore takes no longer at the end of a long run than at its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench_runner.results.records import Cell, Run, RunInfo, Sample, cell_of, changed
from bench_runner.results.statistics import CellSummary, summarise
from bench_runner.variants import Variant, operation_name_of
from reports.analysis.tables import Table, distinguishing_names, table_cell, tables


@dataclass(frozen=True)
class Counts:
    """Progress of one table. `cells` is the number of cells, and `tried` is how many of them have a figure or a reason
    for not having one. `round` is the last round."""

    tried: int
    cells: int
    round: int


class SoFar:
    """The samples of a run in progress, and the cells that are still to be measured. A cell is one operation on one
    data set with one variant. The key of a table is a cell without variant and operation."""

    def __init__(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Prepare tables for the planned `cells`. The keys of `cells` are labels of chains. A chain is the operations
        of one variant on one data set that are measured together. `info` describes the run so far."""
        self.run = Run(Path(), info, ())
        self._by_label = cells
        self._rows = {(cell.suite, cell.dataset): cell.rows for chain in cells.values() for cell in chain}
        self._samples: defaultdict[Cell, list[Sample]] = defaultdict(list)
        """The samples of each chain, that is of the operations that are measured together. The key is a cell without
        operation."""
        self._raw_io: dict[Cell, CellSummary] = {}
        self._others: dict[Cell, dict[Cell, CellSummary]] = {}
        """The summaries of each table, by cell, without raw I/O."""
        self._last_round: defaultdict[Cell, int] = defaultdict(int)
        self._made: dict[Cell, Table] = {}
        self.names: Mapping[Cell, str] = {}
        """A short name of each table, in the order of the tables in a report."""
        self._labels: Mapping[tuple[Cell, Variant], str] = {}
        for chain in cells.values():
            for cell in chain:
                self._put(_untried(cell))
        self._name_tables()

    @property
    def begun(self) -> bool:
        """Whether there is a table with samples."""
        return bool(self.names) and bool(self._samples)

    def take(self, samples: Iterable[Sample]) -> None:
        """Add the samples of finished executions."""
        touched: dict[Cell, None] = {}
        for sample in samples:
            # Only failures of the pilot round are shown, because it uses few rows. A failure also applies to the full
            # number of rows.
            if sample.round == 0 and sample.failure is None:
                continue
            cell = sample.cell
            rows = self._rows.get((cell.suite, cell.dataset), cell.rows)
            chain = replace(cell, operation=operation_name_of(""), rows=rows)
            self._samples[chain].append(sample if sample.round > 0 else changed(sample, rows=rows))
            place = table_cell(chain)
            self._last_round[place] = max(self._last_round[place], sample.round)
            touched[chain] = None
        known = len(self._others)
        for chain in touched:
            for summary in summarise(self._samples[chain]).values():
                self._put(summary)
        if len(self._others) > known:
            self._name_tables()

    def _put(self, summary: CellSummary) -> None:
        cell = summary.cell
        if cell.variant.is_raw_io:
            self._raw_io[cell] = summary
            for place in [place for place in self._made if place.dataset == cell.dataset]:
                del self._made[place]
        else:
            self._others.setdefault(table_cell(cell), {})[cell] = summary
            self._made.pop(table_cell(cell), None)

    def _name_tables(self) -> None:
        summaries = dict(self._raw_io)
        for cells in self._others.values():
            summaries |= cells
        found = tables(self.run, summaries)
        full = distinguishing_names(found)
        datasets = [table.dataset for table in found]
        self.names = {
            _place_of(table): table.dataset if datasets.count(table.dataset) == 1 else full[number]
            for number, table in enumerate(found)
        }
        self._labels = {(_place_of(table), row.variant): row.label for table in found for row in table.rows}

    def label(self, place: Cell, variant: Variant) -> str:
        """Return the label of a variant in a table."""
        return self._labels.get((place, variant), variant)

    def table(self, place: Cell) -> Table:
        """Return one table, sorted as in a report: rows with figures come first. The returned object stays the same
        until one of its figures changes."""
        if place not in self._made:
            (self._made[place],) = tables(self.run, {**self._others[place], **self._raw_io})
        return self._made[place]

    def counts(self, place: Cell) -> Counts:
        """Return the progress of a table. Raw I/O is not counted."""
        cells = self._others[place]
        return Counts(sum(map(was_tried, cells.values())), len(cells), self._last_round[place])

    def chain_of(self, label: str) -> tuple[Variant, Sequence[Cell]] | None:
        """Return the variant that the step `label` of the run measures, and the keys of the tables that contain this
        variant. Return None if the step measures no variant.

        Steps that differ only in their conditions share a label, so there may be several tables.
        """
        cells = self._by_label.get(label)
        if not cells:
            return None
        first = cells[0]
        if first.variant.is_raw_io:
            same = [place for place in self.names if (place.suite, place.dataset) == (first.suite, first.dataset)]
        else:
            same = [place for place in self.names if any(table_cell(cell) == place for cell in cells)]
        return (first.variant, same) if same else None


def was_tried(summary: CellSummary) -> bool:
    """Return whether a measurement has a figure, a failure, or a sample that was not counted."""
    return bool(summary.figures or summary.failures or summary.uncounted)


def _place_of(table: Table) -> Cell:
    return cell_of(table.suite, "", table.dataset, table.data_rows, "", table.conditions, table.machine)


def _untried(cell: Cell) -> CellSummary:
    return CellSummary(
        cell=cell,
        library="",
        figures={},
        by_round={},
        raw_io_multiple=None,
        failures=(),
        failed_rounds=0,
        uncounted=0,
        fidelity=None,
        fallback="",
        losses=(),
        codec=None,
        warnings=(),
    )
