"""The interface through which a run shows its progress: a table that fills, lines of a log, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_runner.results.records import Cell, RunInfo, Sample


class Watcher:
    """Shows nothing. Its methods are called between samples, never while one is taken, and outside every clock."""

    def stage(self, text: str) -> None:
        """Called when a new stage of the run begins."""

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Called with the cells to be measured, as their samples name them: those of each chain, by the text of its
        steps. `info` is the run's own, which is updated during the run."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """Called before each step."""

    def measured(self, samples: Sequence[Sample]) -> None:
        """Called when samples are stored: one execution, or all of an earlier part of the run."""

    def note(self, text: str) -> None:
        """Called with a remark to show once, before the rounds."""

    def part_done(self, folder: Path) -> None:
        """Called when all but the slow variants have their rounds: the run's folder can be shown."""
