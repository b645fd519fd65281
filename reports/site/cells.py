"""List the executions from which a figure was computed. Every stored execution is listed with its state, such as
'counted'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.records import FIGURES, Sample
from bench_runner.results.statistics import CellSummary, Interval
from bench_runner.variants import OperationName
from reports.site.views import RowView


@dataclass(frozen=True)
class SampleLine:
    """One execution: its round, its state, and its stored figures. A missing figure is None."""

    round: int
    position: int
    state: str
    counted: bool
    values: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class CellView:
    """One cell, that is one operation on one data set with one variant, and all executions of the cell."""

    row: RowView
    summary: CellSummary
    names: tuple[str, ...]
    """Names of the figures that the samples have, in the order in which FIGURES lists them."""
    lines: tuple[SampleLine, ...]

    @property
    def medians(self) -> tuple[Interval | None, ...]:
        """Medians of the counted executions, one for each of `names`."""
        return tuple(self.summary.figures.get(name) for name in self.names)


def cell_view(row: RowView, operation: OperationName) -> CellView:
    """Return the view of one operation in a row, with the samples of this operation."""
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
        return "not counted: machine busy, page cache not warm, or a full garbage collection during the call"
    if not has_figure:
        return "not counted: its read failed the check"
    return "counted" if last[sample.round] == sample.position else "not counted: measured again later"
