"""What shows how a run goes: a table that fills, lines of a log, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_runner.results.records import Cell, RunInfo, Sample


class Watcher:
    """Shows nothing. Its methods are called between samples, never while one is taken, and outside every clock."""

    def stage(self, text: str) -> None:
        """A new part of the run begins."""

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """What is to be measured, as its samples will name it: the cells of each chain, by the text that steps have
        for it. `info` is the run's own, and grows with it."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """One thing is about to be done."""

    def measured(self, samples: Sequence[Sample]) -> None:
        """These samples are stored: one execution, or all that an earlier part of the run has."""

    def note(self, text: str) -> None:
        """Something to be said once, before the rounds."""

    def part_done(self, folder: Path) -> None:
        """All but what was left for the end because it is slow has its rounds: the run's folder can be shown."""
