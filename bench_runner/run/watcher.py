"""The interface through which a run reports its progress. Implementations show a live table, log lines, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_runner.results.records import Cell, RunInfo, Sample


class Watcher:
    """A watcher that shows nothing. Its methods are called between samples, never during timing."""

    def stage(self, text: str) -> None:
        """Called when a new stage of the run begins."""

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Called with the cells to be measured, as they are named in samples. The keys are the texts of the chains'
        steps. `info` is the run's own object, which is updated during the run."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """Called before each step."""

    def measured(self, samples: Sequence[Sample]) -> None:
        """Called when samples are stored: those of one execution, or all samples of an earlier part of the run."""

    def note(self, text: str) -> None:
        """Called with a remark that is shown once, before the rounds."""

    def part_done(self, folder: Path) -> None:
        """Called when all variants except the slow ones have their rounds, so that the results in the folder can be
        shown."""
