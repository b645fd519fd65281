"""Treat the machine as at rest in processes that tests start: small controls, and no waiting for writes of others.

Workers also skip the allocation of 500 MB before each known allocation, except in the test of the memory probe.

Python imports this module at startup, because conftest.py puts the folder on its path. Waiting for rest has separate
tests; all other tests would wait several times.
"""

from __future__ import annotations

import sys


def _controls_are_small() -> None:
    from bench_runner.worker import settle

    settle.CONTROL_BYTES = 1 << 20
    # Small controls are easily disturbed. Controls that a test makes slow exceed this factor by far.
    settle.SLOW_FACTOR = 1_000
    settle.Settler._write_back = lambda self: True  # type: ignore[method-assign]


def _probes_are_disturbed_little() -> None:
    from bench_runner.worker import memory_probe

    memory_probe.DISTURBANCE_BYTES = 20 * 10**6
    # Early enough, because the modules that use all sizes have not been imported yet.
    memory_probe.SIZES_BYTES = (10**6, 10**7)


if any(word in ("bench_runner.run.forkserver", "bench_runner.worker.jobs", "run") for word in sys.orig_argv):
    _probes_are_disturbed_little()
if any(word.startswith("bench_runner.") or word.endswith("main.py") for word in sys.orig_argv):
    _controls_are_small()
