"""Shows how a run goes: a bar with the time left on a terminal, nothing where standard error is piped.

It is told what happens and never asks; it measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from bench_runner.clock import now_ns

OnPart = Callable[[Path], None]


class ProgressBar:
    """A run.Watcher that draws a bar from the seconds done and the seconds left."""

    def __init__(self, bar: Progress, task: TaskID, on_part: OnPart | None) -> None:
        """`bar` is running; `task` is its only row. `on_part` shows the run in a folder as far as it is measured."""
        self._bar, self._task, self._on_part = bar, task, on_part
        self._started = now_ns()
        self._stage = ""

    def stage(self, text: str) -> None:
        """A new part of the run begins."""
        self._stage = text
        self._bar.update(self._task, description=text, left="", total=None)

    def step(self, text: str, seconds_left: float | None) -> None:
        """One thing is about to be done."""
        description = f"{self._stage}: {text}"
        if seconds_left is None:
            self._bar.update(self._task, description=description, left="")
            return
        done = (now_ns() - self._started) / 1e9
        left = f"{clock_text(seconds_left)} left"
        self._bar.update(self._task, description=description, completed=done, total=done + seconds_left, left=left)

    def note(self, text: str) -> None:
        """A line that stays, above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def part_done(self, folder: Path) -> None:
        """The bar makes room for what is shown."""
        if self._on_part is not None:
            self._bar.stop()
            self._on_part(folder)
            self._bar.start()


class Silent:
    """A run.Watcher for pipes, logs and tests."""

    def __init__(self, on_part: OnPart | None = None) -> None:
        """`on_part` shows the run in a folder as far as it is measured."""
        self._on_part = on_part

    def stage(self, text: str) -> None:
        """Say nothing."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def part_done(self, folder: Path) -> None:
        """Say nothing; what is there may be shown."""
        if self._on_part is not None:
            self._on_part(folder)


def clock_text(seconds: float) -> str:
    """'45 s', '3:20 min' or '1:05 h'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


@contextmanager
def watching(on_part: OnPart | None = None) -> Iterator[ProgressBar | Silent]:
    """The watcher that fits standard error; its bar is gone when the run ends."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Silent(on_part)
        return
    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[left]:>12}"), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        yield ProgressBar(bar, bar.add_task("", total=None, left=""), on_part)
