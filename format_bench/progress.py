"""Who is told how a run goes: the live table where standard error is a terminal, a line each minute where it is piped,
nobody where a program calls.

It measures nothing and draws nothing.
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
"""Shows the run in a folder as far as it is measured."""
SAID_EVERY_NS = 60_000_000_000
"""A log gets a line this often; a run that is shorter says nothing but its end."""


class Silent(Watcher):
    """A watcher for programs that call: it says nothing."""

    def __init__(self, on_part: OnPart | None = None) -> None:
        """`on_part` shows the run in a folder as far as it is measured."""
        self._on_part = on_part

    def part_done(self, folder: Path) -> None:
        """What is there may be shown."""
        if self._on_part is not None:
            self._on_part(folder)


class EachMinute(Silent):
    """A run.Watcher for pipes and logs: how far it is, once a minute, on standard error."""

    def __init__(self, on_part: OnPart | None = None) -> None:
        """As `Silent`."""
        super().__init__(on_part)
        self._stage, self._said_ns = "", now_ns()

    def stage(self, text: str) -> None:
        """A new part of the run begins."""
        self._stage = text
        self._say(text)

    def step(self, text: str, seconds_left: float | None) -> None:
        """One thing is about to be done."""
        self._say(doing_text(self._stage, seconds_left, text))

    def note(self, text: str) -> None:
        """What was understood of a file, and how long the run takes, stand in a log too."""
        with suppress(OSError, ValueError):
            click.echo(text, err=True)

    def _say(self, text: str) -> None:
        now = now_ns()
        if now - self._said_ns < SAID_EVERY_NS:
            return
        self._said_ns = now
        # Whoever read it may be gone, and the stream be closed.
        with suppress(OSError, ValueError):
            click.echo(text, err=True)


@contextmanager
def watching(on_part: OnPart | None = None) -> Iterator[Watcher]:
    """The watcher that fits standard error; what it has drawn is gone when the run ends."""
    console = Console(stderr=True)
    # Colour may be forced into a pipe, and is no terminal. One without cursor or without our signs shows garbage.
    if not (sys.stderr.isatty() and console.is_interactive) or console.options.ascii_only:
        yield EachMinute(on_part)
        return
    # Reports are loaded for the tables alone.
    from format_bench.live_table import LiveTable

    table = LiveTable(console, on_part)
    try:
        yield table
    finally:
        table.close()
