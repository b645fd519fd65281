"""The two clocks of the network: the time of day for tickets, and one that only goes forward for waiting.

Everything else gets its time as a parameter, so that no test has to sleep.
"""

from __future__ import annotations

import time


def now_s() -> float:
    """Seconds since the epoch, as all machines of a cluster have them."""
    return time.time()


def elapsed_s() -> float:
    """Seconds since some moment of this process; never goes back."""
    return time.monotonic()
