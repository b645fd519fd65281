"""The memory page that a worker process shares with its launcher. The first byte of the page is the worker's phase. The
second byte is the last phase that the launcher has seen."""

from __future__ import annotations

import mmap

from bench_runner.clock import now_ns, pause

PHASE_PREPARE, PHASE_CLOCK, PHASE_AFTER, PHASE_READY = range(4)
SEEN_LIMIT_S = 10.0
"""Longest wait, in seconds, for the launcher to notice a new phase. Normally the launcher reads the page every 2 ms."""


def enter(phase: mmap.mmap, now: int, *, watched: bool) -> None:
    """Set the phase of this sample to `now`. With `watched`, the launcher also observes other processes, such as
    services. In this case, wait until the launcher has seen the phase. Raises OSError if the launcher does not see the
    phase in time."""
    if not watched:
        # Nothing to wait for: timing starts directly after the preparation.
        phase[0] = PHASE_AFTER if now == PHASE_AFTER else phase[0]
        return
    phase[0] = now
    began_ns = now_ns()
    while phase[1] != now:
        if now_ns() - began_ns > SEEN_LIMIT_S * 1e9:
            raise OSError(f"the service monitor did not respond within {SEEN_LIMIT_S:.0f} s")
        pause(0.0002)
