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
        """Called with the planned measurements as Cell objects. The keys of `cells` are the texts with which `step` is
        called later. `info` is the run's own object, which is updated during the run."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """Called before each step."""

    def measured(self, samples: Sequence[Sample]) -> None:
        """Called when the samples of one execution are stored, and at the start with all samples of a run that is
        resumed."""

    def note(self, text: str) -> None:
        """Called with a remark that is shown once, before the rounds."""

    def part_done(self, folder: Path) -> None:
        """Called when only the slow variants still need rounds, so that the results of all other variants in `folder`
        can be shown already."""
