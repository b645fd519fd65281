"""The only place that reads a clock. Adapters never time themselves; a test holds everybody else to it."""

import time
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

    def start(self) -> None:
        """Begin the stretch."""
        self._cpu = cpu_ns()
        self._started = self._previous = now_ns()

    def lap(self, name: str) -> None:
        """Name what has passed since the start, or since the lap before."""
        now = now_ns()
        self.parts[name] = self.parts.get(name, 0) + now - self._previous
        self._previous = now

    def stop(self) -> None:
        """End the stretch: `wall_ns` and `cpu_ns` are known from here on."""
        now = now_ns()
        self.parts["wall_ns"] = now - self._started
        self.parts["cpu_ns"] = cpu_ns() - self._cpu
