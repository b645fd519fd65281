"""Functions that read clocks. No other module reads a clock, and a test checks this. Adapters never time themselves."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def now_ns() -> int:
    """Return the monotonic wall clock in nanoseconds. Only differences are meaningful."""
    return time.perf_counter_ns()


def cpu_ns() -> int:
    """Return the user and system time of all threads of this process, in nanoseconds."""
    return time.process_time_ns()


def thread_cpu_ns() -> int:
    """Return the user and system time of this thread, in nanoseconds."""
    return time.thread_time_ns()


def cpu_of_process_ns(process: int) -> int:
    """Return the user and system time of all threads of another process, in nanoseconds. The process may have ended
    already, unless its parent has waited for it. Raises OSError if there is no such process."""
    # Python offers clock_getcpuclockid(3) for threads only. The id of a process's clock is computed from its pid.
    return time.clock_gettime_ns((~process << 3) | 2)


def pause(seconds: float) -> None:
    """Sleep for `seconds`."""
    time.sleep(seconds)


def utc_now() -> datetime:
    """Return the calendar time. Use it for run identities and records, never for measuring."""
    return datetime.now(UTC)


class Laps:
    """Measures an interval that is split into named parts. `start` reads the wall clock last and `stop` reads the wall
    clock first, so that reading the other clocks is not part of the interval."""

    def __init__(self) -> None:
        self.parts: dict[str, int] = {}
        self._started = self._previous = self._cpu = 0
        self._paused_ns = 0

    def start(self) -> None:
        """Begin the interval."""
        self._cpu = cpu_ns()
        self._started = self._previous = now_ns()

    def lap(self, name: str) -> None:
        """Add the time since the start, or since the last lap, to the part with this name."""
        now = now_ns()
        self.parts[name] = self.parts.get(name, 0) + now - self._previous
        self._previous = now

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the runner's own work in this thread from the measured wall time and CPU time. Record the time of the
        pause as `paused_ns`.

        If other threads of the process use CPU time during the pause, this CPU time still counts as wall time. An
        engine therefore gains nothing by working in the background.
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
        """Store a figure under this name. Use this method for figures that are not times of named parts."""
        self.parts[name] = value

    def stop(self) -> None:
        """End the interval and store `wall_ns` and `cpu_ns`."""
        now = now_ns()
        self.parts["wall_ns"] = now - self._started - self._paused_ns
        self.parts["cpu_ns"] = cpu_ns() - self._cpu
