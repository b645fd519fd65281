"""The only place that reads a clock. Adapters never time themselves; a test holds everybody else to it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def now_ns() -> int:
    """Monotonic wall clock in nanoseconds; only differences mean anything."""
    return time.perf_counter_ns()


def cpu_ns() -> int:
    """User and system time of all threads of this process, in nanoseconds."""
    return time.process_time_ns()


def thread_cpu_ns() -> int:
    """User and system time of this thread, in nanoseconds."""
    return time.thread_time_ns()


def cpu_of_process_ns(process: int) -> int:
    """User and system time of all threads of another process, in nanoseconds, also when it has ended and not been
    waited for. Raises OSError when there is none."""
    # clock_getcpuclockid(3), which Python has for threads alone: the id is a function of the process id.
    return time.clock_gettime_ns((~process << 3) | 2)


def pause(seconds: float) -> None:
    """Do nothing for a while."""
    time.sleep(seconds)


def utc_now() -> datetime:
    """The calendar time, for run identities and records: never for measuring."""
    return datetime.now(UTC)


class Laps:
    """Splits one measured stretch into named parts.

    `start` reads the wall clock last and `stop` reads it first, so what the other clocks cost lies outside.
    """

    def __init__(self) -> None:
        self.parts: dict[str, int] = {}
        self._started = self._previous = self._cpu = 0
        self._paused_ns = 0

    def start(self) -> None:
        """Begin the stretch."""
        self._cpu = cpu_ns()
        self._started = self._previous = now_ns()

    def lap(self, name: str) -> None:
        """Name what has passed since the start, or since the lap before."""
        now = now_ns()
        self.parts[name] = self.parts.get(name, 0) + now - self._previous
        self._previous = now

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let both clocks stand still while the harness does something of its own in this thread: `paused_ns`.

        Of the wall clock that is less what other threads of the process have worked meanwhile: an engine that goes on
        in the background gains nothing by it.
        """
        thread, cpu, began = thread_cpu_ns(), cpu_ns(), now_ns()
        try:
            yield
        finally:
            passed = now_ns() - began
            own = thread_cpu_ns() - thread
            passed -= min(max(cpu_ns() - cpu - own, 0), passed)
            self._paused_ns += passed
            self._previous += passed
            self._cpu += own
            self.note("paused_ns", self._paused_ns)

    def note(self, name: str, value: int) -> None:
        """Keep a figure of the stretch that is no part of its time."""
        self.parts[name] = value

    def stop(self) -> None:
        """End the stretch: `wall_ns` and `cpu_ns` are known from here on."""
        now = now_ns()
        self.parts["wall_ns"] = now - self._started - self._paused_ns
        self.parts["cpu_ns"] = cpu_ns() - self._cpu
