"""Who is told how a run goes: the live table where standard error is a terminal, nobody where it is piped.

It measures nothing and draws nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench_runner.results.records import Cell, RunInfo, Sample
from format_bench.live_table import LiveTable, OnPart


class Silent:
    """A run.Watcher for pipes, logs and tests."""

    def __init__(self, on_part: OnPart | None = None) -> None:
        """`on_part` shows the run in a folder as far as it is measured."""
        self._on_part = on_part

    def stage(self, text: str) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Say nothing."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """Say nothing."""

    def measured(self, samples: Sequence[Sample]) -> None:
        """Say nothing."""

    def part_done(self, folder: Path) -> None:
        """Say nothing; what is there may be shown."""
        if self._on_part is not None:
            self._on_part(folder)


@contextmanager
def watching(on_part: OnPart | None = None) -> Iterator[LiveTable | Silent]:
    """The watcher that fits standard error; what it has drawn is gone when the run ends."""
    console = Console(stderr=True)
    # Colour may be forced into a pipe, and is no terminal. One without cursor or without our signs shows garbage.
    if not (sys.stderr.isatty() and console.is_interactive) or console.options.ascii_only:
        yield Silent(on_part)
        return
    table = LiveTable(console, on_part)
    try:
        yield table
    finally:
        table.close()
