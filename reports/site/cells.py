"""Every execution behind a figure, as it was stored, with what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.records import FIGURES, Sample
from bench_runner.results.statistics import CellSummary, Interval
from bench_runner.variants import OperationName
from reports.site.views import RowView


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


def cell_view(row: RowView, operation: OperationName) -> CellView:
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
        return "not counted: the machine was not at rest, a warm read not warm, or all garbage was collected"
    if not has_figure:
        return "not counted: its read did not pass"
    return "counted" if last[sample.round] == sample.position else "not counted: measured again later"
