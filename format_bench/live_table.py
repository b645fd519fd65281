"""The tables of a run on the terminal while it goes on: they fill row by row and sharpen round by round.

It draws when it is told of something and at no other time, without a thread: between two samples, and never beside one.
What stands on the screen is made by reports.text.live; this module knows the terminal, and when it was drawn last.
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
"""Where not all tables have room, the one in front stays for so long: a round goes to and fro between them."""
_LINES_BESIDES = 3
"""The line above the tables, an empty one, and the cursor's below."""
_LEAST_ROOM = 4
"""Under so many lines for tables there is the line alone."""


class LiveTable(Watcher):
    """A watcher that shows all tables below a line with what is done now and the time left. Before the first chain,
    and for what has none, there is the line alone."""

    def __init__(self, console: Console, on_part: Callable[[Path], None] | None = None) -> None:
        """Begins to draw. `console` is a terminal that knows a cursor."""
        self._console, self._on_part = console, on_part
        self._size = console.size
        self._began_ns = now_ns()
        self._stage = self._doing = ""
        self._share_done: float | None = None
        self._screens: Screens | None = None
        self._screen: Screen | None = None
        """The tables as they were drawn last; None once something of them has changed."""
        self._variant: Variant | None = None
        """What is measured now."""
        self._place: Cell | None = None
        self._in_front_since_ns = 0
        self._closed = False
        self._live = self._begun()

    def stage(self, text: str) -> None:
        """A new part of the run begins."""
        self._stage = self._doing = text
        self._variant = self._share_done = None
        self._draw()

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """What is to be measured."""
        self._screens = Screens(SoFar(cells, info))
        self._place = self._screen = None

    def step(self, text: str, seconds_left: float | None) -> None:
        """One thing is about to be done."""
        now = now_ns()
        self._share_done = None
        if seconds_left is not None:
            done_s = (now - self._began_ns) / 1e9
            self._share_done = done_s / max(done_s + seconds_left, 1e-9)
        self._doing = doing_text(self._stage, seconds_left, self._turned_to(text, now))
        self._draw()

    def measured(self, samples: Sequence[Sample]) -> None:
        """These samples are stored. They are drawn with the step that follows at once."""
        if self._screens is not None:
            self._screens.so_far.take(samples)
            self._screen = None

    def note(self, text: str) -> None:
        """A line that stays, above all that is drawn."""
        with suppress(OSError):
            self._console.print(text, markup=False, highlight=False)

    def part_done(self, folder: Path) -> None:
        """What is measured is shown in place of the tables, which go on below it."""
        if self._on_part is not None:
            self.close()
            self._on_part(folder)
            self._live = self._begun()

    def close(self) -> None:
        """What was drawn is gone, and the cursor back."""
        # The terminal may be closed before.
        with suppress(OSError):
            self._live.stop()

    def _turned_to(self, step: str, now: int) -> str:
        """The step in words; the table that it is about comes to the front."""
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
            # The terminal was closed. What that means for the run is told by a signal, or by nobody.
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
        """Begin on an empty screen: nobody knows how a terminal that was resized has broken its lines anew."""
        self._live.stop()
        self._console.clear()
        self._size, self._screen = self._console.size, None
        self._live = self._begun()

    def _begun(self) -> Live:
        live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        live.start()
        return live
