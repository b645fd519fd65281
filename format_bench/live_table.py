"""The live table: shows the result tables of a run on the terminal, and fills them while the run is measuring.

The live table uses no thread. It draws only when one of its methods is called, which happens between two measurements
and never during a measurement. reports.text.live lays out the screen, and this module controls the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from bench_runner.clock import now_ns
from bench_runner.results.records import Cell, RunInfo, Sample
from bench_runner.run.watcher import Watcher
from bench_runner.variants import Variant
from format_bench.length_text import doing_text
from reports.analysis.live_tables import SoFar
from reports.text.live import Lines, Screen, Screens, status_line

STAYS_NS = 3_000_000_000
"""Shortest time, in ns, that a table stays visible if not all tables fit on the screen. Without this time the screen
would flicker, because consecutive measurements belong to different tables."""
_LINES_BESIDES = 3
"""Screen lines that are not available for tables: the status line, an empty line, and the line of the cursor."""
_LEAST_ROOM = 4
"""If fewer screen lines than this remain for tables, only the status line is drawn."""


class LiveTable(Watcher):
    """A watcher (an object that a run informs about its progress). It draws a status line with the current step and the
    time left, and the result tables below.

    Only the status line is drawn before the first measurement, and in stages that fill no table.
    """

    def __init__(self, console: Console, on_part: Callable[[Path], None] | None = None) -> None:
        """Start drawing on `console`, a terminal with cursor control."""
        self._console, self._on_part = console, on_part
        self._size = console.size
        self._began_ns = now_ns()
        self._stage = self._doing = ""
        self._share_done: float | None = None
        self._screens: Screens | None = None
        self._screen: Screen | None = None
        """The tables as last drawn; None if the contents of the tables have changed since then."""
        self._variant: Variant | None = None
        """The variant that is measured now."""
        self._place: Cell | None = None
        self._in_front_since_ns = 0
        self._closed = False
        self._live = self._begun()

    def stage(self, text: str) -> None:
        """Show that a new stage of the run begins."""
        self._stage = self._doing = text
        self._variant = self._share_done = None
        self._draw()

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Prepare empty tables for all planned measurements."""
        self._screens = Screens(SoFar(cells, info))
        self._place = self._screen = None

    def step(self, text: str, seconds_left: float | None) -> None:
        """Show the next step."""
        now = now_ns()
        self._share_done = None
        if seconds_left is not None:
            done_s = (now - self._began_ns) / 1e9
            self._share_done = done_s / max(done_s + seconds_left, 1e-9)
        self._doing = doing_text(self._stage, seconds_left, self._turned_to(text, now))
        self._draw()

    def measured(self, samples: Sequence[Sample]) -> None:
        """Add samples to the tables. They become visible with the next call of `step`, which follows at once."""
        if self._screens is not None:
            self._screens.so_far.take(samples)
            self._screen = None

    def note(self, text: str) -> None:
        """Print a permanent line above the tables."""
        with suppress(OSError):
            self._console.print(text, markup=False, highlight=False)

    def part_done(self, folder: Path) -> None:
        """Show the partly measured run, then continue drawing below it."""
        if self._on_part is not None:
            self.close()
            self._on_part(folder)
            self._live = self._begun()

    def close(self) -> None:
        """Remove what was drawn and restore the cursor."""
        # The terminal may already be closed.
        with suppress(OSError):
            self._live.stop()

    def _turned_to(self, step: str, now: int) -> str:
        """Choose the table to show, and return the step's text for the status line. The table is one that contains the
        step's variant. But a table that became visible less than STAYS_NS ago stays."""
        so_far = self._screens.so_far if self._screens else None
        found = so_far.chain_of(step) if so_far else None
        if so_far is None or found is None:
            self._variant = None
            return step
        self._variant, places = found
        if self._place is None or (self._place not in places and now - self._in_front_since_ns >= STAYS_NS):
            self._place, self._in_front_since_ns, self._screen = places[0], now, None
        place = self._place if self._place in places else places[0]
        return f"{so_far.label(place, self._variant)} on {place.dataset}"

    def _draw(self) -> None:
        if self._closed:
            return
        try:
            if self._console.size != self._size:
                self._clear()
            self._live.update(Lines(self._lines()), refresh=True)
        except OSError:
            # The terminal was closed. Continue without drawing; if the system also sends a signal, it ends the run.
            self._closed = True

    def _lines(self) -> list[Text]:
        width, height = self._size
        above = status_line(self._doing, self._share_done, width)
        room = height - _LINES_BESIDES
        if self._screens is None or room < _LEAST_ROOM:
            return [above]
        so_far = self._screens.so_far
        place = self._place or (next(iter(so_far.names), None) if so_far.begun else None)
        if place is None:
            return [above]
        if self._screen is None:
            self._screen = self._screens.screen(place, width, room)
        return [above, Text(), *self._screen.marked(self._variant)]

    def _clear(self) -> None:
        """Clear the screen and start again, because it is unknown how a resized terminal has wrapped its lines."""
        self._live.stop()
        self._console.clear()
        self._size, self._screen = self._console.size, None
        self._live = self._begun()

    def _begun(self) -> Live:
        live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        live.start()
        return live
