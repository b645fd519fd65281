"""The live table of a run: drawn only on events, without a thread, and removed at the end."""

from __future__ import annotations

import errno
import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console, ConsoleDimensions

from format_bench import live_table, progress
from format_bench.live_table import STAYS_NS, LiveTable
from tests.reports.analysis.test_live_tables import executions, planned
from tests.reports.factory import make_run

ROOT = Path(__file__).parents[2]
RUN = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=2)


class Terminal(io.StringIO):
    """Output since the last check, and a terminal size that changes."""

    def __init__(self, width: int = 100, height: int = 30) -> None:
        super().__init__()
        self.console = Sized(file=self, force_terminal=True, color_system=None, legacy_windows=False)
        self.console.told = ConsoleDimensions(width, height)
        self.broken = False

    def write(self, text: str) -> int:
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(text)

    def new(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text

    def lines(self) -> list[str]:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.new()).replace("\r", "").splitlines()


class Sized(Console):
    """A console whose terminal has the size that a test gives it."""

    told: ConsoleDimensions

    @property
    def size(self) -> ConsoleDimensions:
        return self.told


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The clock that the table reads: the test sets its only number."""
    now = [0]
    monkeypatch.setattr(live_table, "now_ns", lambda: now[0])
    return now


def label_of(execution: int) -> str:
    sample = executions(RUN)[execution][0]
    return f"{sample.suite}/{sample.dataset}/{sample.variant}"


def test_before_a_plan_there_is_only_the_status_line(clock: list[int]) -> None:
    terminal = Terminal()
    shown = LiveTable(terminal.console)
    shown.stage("data")
    assert terminal.lines() == ["──────────────────── data"]
    shown.step("eq: 65,536 of 1,000,000 rows", None)
    assert terminal.lines() == ["──────────────────── data: eq: 65,536 of 1,000,000 rows"]
    shown.planned(planned(RUN), RUN.info)
    shown.stage("memory probe")
    assert terminal.lines() == ["──────────────────── memory probe"]


def test_samples_are_drawn_with_the_next_step(clock: list[int]) -> None:
    terminal = Terminal()
    shown = LiveTable(terminal.console)
    shown.planned(planned(RUN), RUN.info)
    shown.stage("round 1")
    terminal.new()
    clock[0] = 10**10
    shown.step(label_of(0), 30.0)
    first = terminal.lines()
    short, dataset = executions(RUN)[0][0].variant.partition("[")[0], executions(RUN)[0][0].dataset
    assert first[0].startswith(f"━━━━━─────────────── round 1, 30 s left, now: {short}")
    assert first[0].endswith(f" on {dataset}")
    assert any(line.startswith(short) and "…" in line for line in first[5:])
    shown.measured(executions(RUN)[0])
    assert terminal.new() == "", "nothing is drawn before the next step"
    shown.step(label_of(1), 29.0)
    second = terminal.lines()
    assert any(line.startswith(short) and "…" not in line for line in second[5:])


def test_samples_of_an_earlier_part_are_drawn_from_the_start(clock: list[int]) -> None:
    terminal = Terminal()
    shown = LiveTable(terminal.console)
    shown.planned(planned(RUN), RUN.info)
    shown.measured(RUN.samples)
    shown.stage("memory probe")
    text = terminal.lines()
    assert text[0].endswith("memory probe")
    assert text[2].startswith("tabular: eq")


def test_a_table_stays_in_front_for_a_while(clock: list[int]) -> None:
    terminal = Terminal(height=16)
    shown = LiveTable(terminal.console)
    shown.planned(planned(RUN), RUN.info)
    titles = []
    moments = (0, STAYS_NS - 1, STAYS_NS, STAYS_NS + 1, 2 * STAYS_NS)
    for at, label in zip(moments, ("eq", "core", "core", "eq", "eq"), strict=True):
        terminal.new()
        clock[0] = at
        shown.step(f"tabular/{label}/pickle[engine=pandas]", 1.0)
        lines = terminal.lines()
        assert lines[0].endswith(f"now: pickle on {label}"), "the line above is never behind"
        titles += [line.split(",")[0] for line in lines if line.startswith("tabular: ")]
    assert titles == ["tabular: eq", "tabular: eq", "tabular: core", "tabular: core", "tabular: eq"]


def test_it_draws_without_a_thread_and_leaves_nothing(clock: list[int]) -> None:
    before = threading.active_count()
    terminal = Terminal()
    shown = LiveTable(terminal.console)
    shown.planned(planned(RUN), RUN.info)
    shown.step(label_of(0), 1.0)
    assert threading.active_count() == before
    drawn = terminal.new().count("\n")
    shown.close()
    last = terminal.new()
    assert "\x1b[?25h" in last, "the cursor is back"
    assert last.endswith("\r" + "\x1b[1A\x1b[2K" * (drawn + 1)), "each line is erased"
    assert sys.stderr is not terminal


@pytest.mark.parametrize(("width", "height"), [(60, 20), (200, 70), (20, 4), (1, 1)])
def test_a_terminal_that_is_resized_is_drawn_anew_on_an_empty_screen(clock: list[int], width: int, height: int) -> None:
    terminal = Terminal()
    shown = LiveTable(terminal.console)
    shown.planned(planned(RUN), RUN.info)
    shown.step(label_of(0), 1.0)
    terminal.new()
    terminal.console.told = ConsoleDimensions(width, height)
    shown.step(label_of(1), 1.0)
    text = terminal.getvalue()
    assert "\x1b[2J\x1b[H" in text
    terminal.seek(0)
    terminal.truncate()
    terminal.write(text.partition("\x1b[2J\x1b[H")[2])
    lines = terminal.lines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= max(height - 1, 1)
    shown.step(label_of(2), 1.0)
    assert "\x1b[2J" not in terminal.new()


def test_a_closed_terminal_is_not_drawn_on_and_does_not_end_the_run(clock: list[int]) -> None:
    terminal = Terminal()
    shown = LiveTable(terminal.console)
    shown.planned(planned(RUN), RUN.info)
    terminal.broken = True
    shown.stage("round 1")
    shown.step(label_of(0), 1.0)
    shown.measured(executions(RUN)[0])
    shown.close()


# --- who gets it ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tty() -> Iterator[io.TextIOWrapper]:
    """The program's end of a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield stream
    os.close(ours)


def raising_epipe(text: str) -> int:
    raise OSError(errno.EPIPE, "Broken pipe")


def watcher_on(stream: object, monkeypatch: pytest.MonkeyPatch, **environment: str) -> object:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.watching() as watcher:
        return type(watcher)


def test_a_terminal_gets_the_table(tty: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watcher_on(tty, monkeypatch) is LiveTable
    assert watcher_on(tty, monkeypatch, NO_COLOR="1") is LiveTable


def test_a_pipe_and_a_terminal_without_cursor_get_no_table(
    tty: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for forced in ({}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}):
        pipe = io.StringIO()
        assert watcher_on(pipe, monkeypatch, **forced) is progress.EachMinute
        assert pipe.getvalue() == ""
    assert watcher_on(tty, monkeypatch, TERM="dumb") is progress.EachMinute
    tty.reconfigure(encoding="latin-1")
    assert watcher_on(tty, monkeypatch) is progress.EachMinute, "it has no sign for what is to come"


def test_a_log_gets_a_line_each_minute_and_a_short_run_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_ns = 0
    monkeypatch.setattr(progress, "now_ns", lambda: now_ns)
    watcher = progress.EachMinute()
    for second in range(0, 200, 20):
        now_ns = second * 10**9
        if second % 100 == 0:
            watcher.stage(f"round {1 + second // 100}")
        watcher.step(f"chain {second}", 200.0 - second)
    assert capsys.readouterr().err.splitlines() == [
        "round 1, 2:20 min left, now: chain 60",
        "round 2, 1:20 min left, now: chain 120",
        "round 2, 20 s left, now: chain 180",
    ]
    gone, now_ns = io.StringIO(), 10**12
    monkeypatch.setattr(gone, "write", raising_epipe)
    monkeypatch.setattr(sys, "stderr", gone)
    watcher.stage("the reader is gone")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ctrl_c_on_a_terminal_leaves_the_table_and_how_to_resume(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["run", "tabular", "--datasets", "^eq$", "--rows", "2000", "--formats", "^pickle", "--track", "plain"]
    command = [sys.executable, "main.py", *words, "--rounds", "50", "--no-fidelity", "--out", str(tmp_path / "run")]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "110", "LINES": "40"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, cwd=ROOT, env=environment)
    os.close(theirs)
    said, stopped = "", False
    try:
        while True:
            try:
                said += os.read(ours, 65536).decode(errors="replace")
            except OSError:
                break
            if "round 3, " in said and not stopped:
                process.send_signal(signal.SIGINT)
                stopped = True
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        os.close(ours)
    live, _, final = said.partition("\x1b[?25h")
    assert "round 3, " in live
    assert "of 50" in live
    final = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", final).replace("\r", "")
    assert "tabular: eq, 2,000 rows" in final
    assert "the run did not finish" in final
    assert final.rstrip().endswith("--resume.")
