"""The memory page that a worker shares with its launcher: the worker's phase, and the phase that the launcher has
seen."""

from __future__ import annotations

import mmap

from bench_runner.clock import now_ns, pause

PHASE_PREPARE, PHASE_CLOCK, PHASE_AFTER, PHASE_READY = range(4)
SEEN_LIMIT_S = 10.0
"""Seconds without a poll after which the launcher is considered dead. It polls every 2 ms."""


def enter(phase: mmap.mmap, now: int, *, watched: bool) -> None:
    """Set the phase of this sample. If services are `watched` from outside, wait until the launcher has seen the phase.
    Raises OSError if the launcher does not see it in time."""
    if not watched:
        # Without services there is nothing to wait for, so timing starts directly after the preparation.
        phase[0] = PHASE_AFTER if now == PHASE_AFTER else phase[0]
        return
    phase[0] = now
    began_ns = now_ns()
    while phase[1] != now:
        if now_ns() - began_ns > SEEN_LIMIT_S * 1e9:
            raise OSError(f"the service monitor did not respond within {SEEN_LIMIT_S:.0f} s")
        pause(0.0002)
