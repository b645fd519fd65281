"""The two clocks of the services: the time of day for tickets, and a monotonic clock for waiting.

All other code gets the time as a parameter, so that no test has to sleep.
"""

from __future__ import annotations

import time


def now_s() -> float:
    """Return seconds since the epoch. Tickets expire by this time, so the clocks of a cluster's machines must agree."""
    return time.time()


def elapsed_s() -> float:
    """Return the seconds of a clock that never goes back, counted from an arbitrary moment."""
    return time.monotonic()
