"""In what tests start, the machine is always at rest: controls are small, and nobody waits for what others write.

Nor does a worker take and give back 500 MB before each known allocation, but in the probe's own test.

Python imports this module when it starts, because conftest.py puts the folder on its path. Coming to rest has
tests of its own, and each of the others would wait for it several times.
"""

from __future__ import annotations

import sys


def _controls_are_small() -> None:
    from bench_runner.worker import settle

    settle.CONTROL_BYTES = 1 << 20
    # A small control is easily disturbed; one that is planted as slow is so by far more.
    settle.SLOW_FACTOR = 1_000
    settle.Settler._write_back = lambda self: True  # type: ignore[method-assign]


def _probes_are_disturbed_little() -> None:
    from bench_runner.worker import memory_probe

    memory_probe.DISTURBANCE_BYTES = 20 * 10**6
    # Whoever asks about all sizes has not been imported yet.
    memory_probe.SIZES_BYTES = (10**6, 10**7)


if any(word in ("bench_runner.run.forkserver", "bench_runner.worker.jobs", "run") for word in sys.orig_argv):
    _probes_are_disturbed_little()
if any(word.startswith("bench_runner.") or word.endswith("main.py") for word in sys.orig_argv):
    _controls_are_small()
