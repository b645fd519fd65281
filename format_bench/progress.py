"""Show the progress of a run: a live table if standard error is a terminal, else one line per minute.

Callers of the Python API see no progress by default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from rich.console import Console

from bench_runner.clock import now_ns
from bench_runner.run.watcher import Watcher
from format_bench.length_text import doing_text

OnPart = Callable[[Path], None]
"""A function that shows a partly measured run. Its argument is the folder of the run."""
SAID_EVERY_NS = 60_000_000_000
"""Interval between progress lines in a log, in ns. A run that is shorter logs no progress."""


class Silent(Watcher):
    """A watcher (an object that a run informs about its progress) that prints nothing, for callers of the API."""

    def __init__(self, on_part: OnPart | None = None) -> None:
        """`on_part` is called to show a partly measured run. With None, such a run is not shown."""
        self._on_part = on_part

    def part_done(self, folder: Path) -> None:
        """Show the partly measured run in this folder."""
        if self._on_part is not None:
            self._on_part(folder)


class EachMinute(Silent):
    """A watcher for pipes and logs. It prints progress on standard error once a minute."""

    def __init__(self, on_part: OnPart | None = None) -> None:
        """`on_part` is called to show a partly measured run, as in `Silent`."""
        super().__init__(on_part)
        self._stage, self._said_ns = "", now_ns()

    def stage(self, text: str) -> None:
        """Print that a new stage of the run begins, if the last line was printed at least a minute ago."""
        self._stage = text
        self._say(text)

    def step(self, text: str, seconds_left: float | None) -> None:
        """Print the next step, if the last line was printed at least a minute ago."""
        self._say(doing_text(self._stage, seconds_left, text))

    def note(self, text: str) -> None:
        """Print a message at once, such as how a file was read or how long the run takes."""
        with suppress(OSError, ValueError):
            click.echo(text, err=True)

    def _say(self, text: str) -> None:
        now = now_ns()
        if now - self._said_ns < SAID_EVERY_NS:
            return
        self._said_ns = now
        # The program that reads this output may have closed the pipe.
        with suppress(OSError, ValueError):
            click.echo(text, err=True)


@contextmanager
def watching(on_part: OnPart | None = None) -> Iterator[Watcher]:
    """Yield a watcher: a live table if standard error is a terminal, else one that prints lines.

    At the end the live table is removed from the terminal.
    """
    console = Console(stderr=True)
    # Forced colour does not make a pipe a terminal. A terminal without cursor control or Unicode would show garbage.
    if not (sys.stderr.isatty() and console.is_interactive) or console.options.ascii_only:
        yield EachMinute(on_part)
        return
    # Imported here because format_bench.live_table imports the reports, which only the live table needs.
    from format_bench.live_table import LiveTable

    table = LiveTable(console, on_part)
    try:
        yield table
    finally:
        table.close()
