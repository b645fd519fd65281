"""Treat the machine as idle in processes that tests start: controls are small, and writes of other processes are
ignored.

Workers also allocate much less memory to disturb the probe before known allocations, except in the probe's own test.

Python imports this module at startup, because conftest.py puts its folder on the path. Waiting for an idle machine has
separate tests. Without this module, all other tests would wait several times.
"""

from __future__ import annotations

import sys


def _controls_are_small() -> None:
    from bench_runner.worker import settle

    settle.CONTROL_BYTES = 1 << 20
    # Small controls are easily disturbed, so the factor is high. Controls that a test slows down on purpose exceed it
    # by far.
    settle.SLOW_FACTOR = 1_000
    settle.Settler._write_back = lambda self: True  # type: ignore[method-assign]


def _probes_are_disturbed_little() -> None:
    from bench_runner.worker import memory_probe

    memory_probe.DISTURBANCE_BYTES = 20 * 10**6
    # The setting takes effect, because the modules that use the list of sizes have not been imported yet.
    memory_probe.SIZES_BYTES = (10**6, 10**7)


PROBING = ("bench_runner.run.forkserver", "bench_runner.worker.jobs", "bench_runner.run.cluster.part", "run")
if any(word in PROBING for word in sys.orig_argv):
    _probes_are_disturbed_little()
if any(word.startswith("bench_runner.") or word.endswith("main.py") for word in sys.orig_argv):
    _controls_are_small()
