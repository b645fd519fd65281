"""The token bucket passes its rate over any time span, and at most its burst at once."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bench_runner.run.services import bucket
from bench_runner.run.services.bucket import BURST_NS, Bucket


class Time:
    """A clock that advances when code sleeps. Each sleep takes `late_ns` longer than requested."""

    def __init__(self, late_ns: Callable[[], int] = lambda: 0) -> None:
        self.now_ns, self._late_ns = 10**15, late_ns

    def pause(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9) + 1 + self._late_ns()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Time], Time]:
    def use(time: Time) -> Time:
        monkeypatch.setattr(bucket, "now_ns", lambda: time.now_ns)
        monkeypatch.setattr(bucket, "pause", time.pause)
        return time

    return use


@pytest.mark.parametrize("bytes_per_s", [1e6, 125e6, 312.5e6])
def test_the_rate_over_a_long_time_is_the_one_asked_for(clock: Callable[[Time], Time], bytes_per_s: float) -> None:
    time, rng = clock(Time()), random.Random(3)
    made, began, passed = Bucket(bytes_per_s), time.now_ns, 0
    while passed < 2 * bytes_per_s:
        size = rng.randrange(1, 200_000)
        made.wait(size)
        passed += size
    assert passed / ((time.now_ns - began) / 1e9) == pytest.approx(bytes_per_s, rel=0.001)


def test_sleeps_that_last_too_long_are_made_up_for(clock: Callable[[Time], Time]) -> None:
    rng = random.Random(5)
    time = clock(Time(lambda: rng.randrange(0, BURST_NS // 2)))
    made, began = Bucket(1e6), time.now_ns
    for _ in range(2_000):
        made.wait(1_000)
    assert 2e6 / ((time.now_ns - began) / 1e9) == pytest.approx(1e6, rel=0.01)


def test_an_idle_line_saves_up_no_more_than_its_burst(clock: Callable[[Time], Time]) -> None:
    time = clock(Time())
    made = Bucket(1e6)
    time.now_ns += 60 * 10**9
    began, passed = time.now_ns, 0
    while time.now_ns - began < 10**9:
        made.wait(1_000)
        passed += 1_000
    assert 1e6 <= passed <= 1e6 * (1 + BURST_NS / 1e9) + 1_000
