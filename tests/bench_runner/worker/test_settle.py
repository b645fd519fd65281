"""The machine is idle before every sample, which a control measurement proves (rule 1)."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from bench_runner.machine import linux
from bench_runner.worker import settle
from bench_runner.worker.settle import ALWAYS, Control, Readiness, Settler


class ScriptedSettler(Settler):
    """A settler whose control measurements are scripted."""

    def __init__(self, folder: Path, controls: list[Control], readiness: Readiness = ALWAYS) -> None:
        super().__init__(folder, readiness=readiness)
        self.script = controls

    def _control(self) -> Control:
        return self.script.pop(0)


NEED_BYTES = 100_000_000
GOOD, SLOW_WRITE, SLOW_MEMORY = Control(100, 100), Control(160, 100), Control(100, 160)


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    monkeypatch.setattr(linux, "touch_memory", sizes.append)
    monkeypatch.setattr(linux, "unwritten_bytes", lambda: 0)
    return sizes


@pytest.mark.rule(1)
def test_a_good_control_settles_at_once(tmp_path: Path, touched: list[int]) -> None:
    settler = ScriptedSettler(tmp_path, [GOOD, Control(145, 145)])
    assert settler.settle(NEED_BYTES).settled
    assert settler.settle(NEED_BYTES).settled
    assert touched == [NEED_BYTES, NEED_BYTES]


@pytest.mark.rule(1)
def test_the_controls_own_memory_is_made_ready_for_a_small_sample(tmp_path: Path, touched: list[int]) -> None:
    ScriptedSettler(tmp_path, [GOOD]).settle(1000)
    assert touched == [settle.CONTROL_BYTES]


@pytest.mark.rule(1)
def test_memory_is_made_ready_before_the_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Told(ScriptedSettler):
        def _control(self) -> Control:
            order.append("control")
            return super()._control()

    monkeypatch.setattr(linux, "touch_memory", lambda size: order.append(f"touch {size}"))
    monkeypatch.setattr(linux, "unwritten_bytes", lambda: 0)
    Told(tmp_path, [GOOD]).settle(NEED_BYTES)
    assert order == [f"touch {NEED_BYTES}", "control"]


@pytest.mark.parametrize("slow", [SLOW_MEMORY, SLOW_WRITE])
@pytest.mark.rule(1)
def test_a_slow_control_is_cured_by_touching_more_memory(tmp_path: Path, touched: list[int], slow: Control) -> None:
    settler = ScriptedSettler(tmp_path, [slow, GOOD])
    settler.learn(GOOD)
    rest = settler.settle(NEED_BYTES)
    assert rest.settled
    assert touched == [NEED_BYTES, 2 * NEED_BYTES]
    assert rest.control == GOOD


def test_writing_and_memory_are_each_held_against_their_own_best(tmp_path: Path, touched: list[int]) -> None:
    """On most machines, writing takes several times as long as touching the same amount of memory."""
    best = Control(1_000, 100)
    settler = ScriptedSettler(tmp_path, [best, Control(1_000, 160), best])
    settler.learn(best)
    assert settler.settle(NEED_BYTES).tries == 1
    assert settler.settle(NEED_BYTES).tries == 2


@pytest.mark.rule(1)
def test_three_slow_controls_leave_the_sample_unsettled(tmp_path: Path, touched: list[int]) -> None:
    settler = ScriptedSettler(tmp_path, [GOOD, SLOW_WRITE, SLOW_WRITE, SLOW_MEMORY])
    settler.settle(0)
    rest = settler.settle(0)
    assert not rest.settled
    assert "1.6 times the run's best" in rest.why_not
    assert rest.control == SLOW_MEMORY


@pytest.mark.rule(1)
def test_unwritten_pages_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [50 * 10**6, 20 * 10**6, 10 * 10**6]
    monkeypatch.setattr(linux, "unwritten_bytes", lambda: left.pop(0))
    assert ScriptedSettler(tmp_path, [GOOD]).settle(0).settled
    assert left == []


@pytest.mark.rule(1)
def test_endless_write_back_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, touched: list[int]) -> None:
    monkeypatch.setattr(linux, "unwritten_bytes", lambda: 10**9)
    monkeypatch.setattr(settle, "WRITE_BACK_LIMIT_S", 0.05)
    rest = ScriptedSettler(tmp_path, [GOOD, GOOD, GOOD]).settle(0)
    assert not rest.settled
    assert "unwritten" in rest.why_not


def test_earlier_writes_are_synced_before_each_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, touched: list[int]
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(linux, "sync_file_system", synced.append)
    settler = ScriptedSettler(tmp_path, [GOOD, SLOW_WRITE, GOOD])
    settler.settle(0)
    assert synced == [tmp_path]
    settler.settle(0)
    assert synced == [tmp_path] * 3


@pytest.mark.rule(1)
def test_at_most_half_of_the_free_memory_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, touched: list[int]
) -> None:
    monkeypatch.setattr(linux, "available_bytes", lambda: 10**9)
    ScriptedSettler(tmp_path, [GOOD]).settle(10**10)
    assert touched == [10**9 // 2]


@pytest.mark.rule(1)
def test_no_more_is_made_ready_than_a_guest_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, touched: list[int]
) -> None:
    monkeypatch.setattr(linux, "available_bytes", lambda: 10**11)
    ScriptedSettler(tmp_path, [GOOD]).settle(10**10)
    assert touched == [settle.READY_BYTES]


def test_the_best_control_is_each_figure_on_its_own(tmp_path: Path, touched: list[int]) -> None:
    settler = ScriptedSettler(tmp_path, [Control(100, 125), Control(125, 100)])
    assert settler.settle(0).settled
    assert settler.settle(0).settled
    assert settler.best == GOOD


@pytest.mark.rule(1)
def test_a_worker_goes_by_the_runs_best(tmp_path: Path, touched: list[int]) -> None:
    settler = ScriptedSettler(tmp_path, [SLOW_WRITE] * 3)
    settler.learn(GOOD)
    assert not settler.settle(0).settled
    assert Settler(tmp_path, GOOD).best == GOOD


@pytest.mark.rule(1)
def test_the_real_control_leaves_no_file(tmp_path: Path) -> None:
    rest = Settler(tmp_path).settle(0)
    assert rest.control.write_ns > 0
    assert rest.control.allocate_ns > 0
    assert rest.settle_ns >= rest.control.write_ns + rest.control.allocate_ns
    assert list(tmp_path.iterdir()) == []


def test_a_control_that_cannot_be_written_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "control").symlink_to("/dev/full")
    with pytest.raises(OSError, match="cannot write its 64 MB: No space left on device") as caught:
        Settler(tmp_path).calibrate()
    assert caught.value.filename == str(tmp_path / "control")


@pytest.mark.rule(1)
def test_the_control_copies_from_the_beginning_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the copy began in the last bytes of a page, both halves would take two to four times as long, and a whole cell
    would not be counted."""
    sources: list[int] = []
    fresh = linux.anonymous_memory

    def told(size_bytes: int) -> mmap.mmap:
        memory = fresh(size_bytes)
        sources.append(size_bytes)
        assert np.frombuffer(memory, np.uint8).ctypes.data % linux.PAGE_BYTES == 0
        return memory

    monkeypatch.setattr(linux, "anonymous_memory", told)
    settle.Settler(tmp_path).settle(0)
    assert settle.BLOCK_BYTES in sources
    assert sources.count(1 << 16) == sources.count(settle.CONTROL_BYTES) == 2, "each touch has a source and a target"


# --- whether touching memory gains anything here -----------------------------------------------------------------

NEVER = Readiness(False, "nothing was taken back")


@pytest.mark.parametrize(
    ("touches_ms", "gains", "why"),
    [
        ([90, 30], True, "3.0 times as long the first time"),
        ([31, 30, 90], True, "3.0 times as long some seconds later"),
        ([31, 30, 33], False, "of idle memory took 1.1 times as long"),
    ],
)
@pytest.mark.rule(1)
def test_whether_the_host_takes_memory_back_is_examined(
    touches_ms: list[int], gains: bool, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(settle, "_touch_ns", lambda size: touches_ms.pop(0) * 10**6)
    found = settle.examine(lambda: waited.append(len(touches_ms)), 10**10)
    assert found.touches is gains
    assert why in found.why
    assert touches_ms == []
    # If the first touch already shows the effect, the test of the effect does not wait.
    assert len(waited) == ("the first time" not in why)


def test_the_real_examination_takes_no_more_than_a_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(linux, "touch_memory", sizes.append)
    readiness = settle.examine(lambda: None, 4 * 10**8)
    assert set(sizes) == {10**8}
    assert readiness.most_bytes == 2 * 10**8, "no container's limit is reached before a sample"
    sizes.clear()
    assert settle.examine(lambda: None, 0).most_bytes == settle.CONTROL_BYTES
    assert set(sizes) == {settle.CONTROL_BYTES}, "the control takes as much, whatever a container leaves"


def test_no_more_is_examined_than_a_container_leaves(tmp_path: Path, touched: list[int]) -> None:
    settler = Settler(tmp_path, readiness=Readiness(True, "as the test says", 2 * 10**8))
    settler.examine_more(3 * 10**8, lambda: 65 * 10**7)
    assert max(touched) == 3 * 10**8


@pytest.mark.parametrize(
    ("keeps_bytes", "need_bytes", "most_bytes"),
    [
        # The memory grows from 900 MB to 1.35 GB and 2.025 GB, which is enough.
        (10**10, 800_000_000, 900_000_000),
        (10**10, 1_000_000_000, 1_350_000_000),
        (10**10, 1_500_000_000, 2_025_000_000),
        # Half of the 4.1 GB of usable memory may be touched.
        (10**10, 3_000_000_000, 2_025_000_000),
        (1_400_000_000, 3_000_000_000, 1_350_000_000),
        (1_000_000_000, 3_000_000_000, 900_000_000),
    ],
)
@pytest.mark.rule(1)
def test_more_memory_is_made_ready_where_a_sample_needs_it_and_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps_bytes: int, need_bytes: int, most_bytes: int
) -> None:
    """The simulated host gives 1 GB a second, and takes back memory beyond `keeps_bytes` at once."""
    held_bytes, clock_ns, touches = 0, 0, 0

    def touch(size_bytes: int) -> None:
        nonlocal held_bytes, clock_ns, touches
        ready_bytes = min(size_bytes, held_bytes)
        clock_ns += int(0.2 * ready_bytes) + size_bytes - ready_bytes
        held_bytes, touches = min(max(size_bytes, held_bytes), keeps_bytes), touches + 1

    monkeypatch.setattr(linux, "touch_memory", touch)
    monkeypatch.setattr(settle, "now_ns", lambda: clock_ns)
    settler = Settler(tmp_path)
    settler.examine_more(need_bytes, lambda: 4_100_000_000)
    assert settler.readiness.most_bytes == most_bytes
    before = touches
    settler.examine_more(need_bytes, lambda: 4_100_000_000)
    assert touches == before, "it is asked once"


def test_where_memory_is_not_touched_nothing_more_is_examined(tmp_path: Path, touched: list[int]) -> None:
    Settler(tmp_path, readiness=NEVER).examine_more(10**10, lambda: 10**11)
    assert touched == []


@pytest.mark.rule(1)
def test_where_nothing_is_gained_nothing_is_touched(tmp_path: Path, touched: list[int]) -> None:
    assert ScriptedSettler(tmp_path, [GOOD], NEVER).settle(NEED_BYTES).settled
    assert touched == []


@pytest.mark.parametrize("slow", [SLOW_MEMORY, SLOW_WRITE])
@pytest.mark.rule(1)
def test_a_slow_control_that_touching_cures_is_remembered(tmp_path: Path, touched: list[int], slow: Control) -> None:
    """The simulated machine was found to keep its memory, but then takes memory back."""
    settler = ScriptedSettler(tmp_path, [slow, GOOD, GOOD], NEVER)
    settler.learn(GOOD)
    rest = settler.settle(NEED_BYTES)
    assert rest.settled
    assert touched == [2 * NEED_BYTES]
    settler.learn_from(rest)
    assert settler.readiness.touches
    settler.settle(NEED_BYTES)
    assert touched == [2 * NEED_BYTES, NEED_BYTES]


def test_a_quick_control_changes_nothing(tmp_path: Path, touched: list[int]) -> None:
    settler = ScriptedSettler(tmp_path, [GOOD], NEVER)
    settler.learn_from(settler.settle(NEED_BYTES))
    assert not settler.readiness.touches
