"""In a worker of tests the machine is always at rest: controls are small, and nobody waits for what others write.

The plug-ins of tests load this; it acts in workers, where the environment asks for it. Coming to rest has tests of its
own, and each of the others would wait for it several times.
"""

from __future__ import annotations

import os
import sys

from bench_runner.worker import settle

VARIABLE = "FORMAT_BENCH_TESTS_SMALL_CONTROLS"

if os.environ.get(VARIABLE) and "pytest" not in sys.modules:
    settle.CONTROL_BYTES = 1 << 20
    # A small control is easily disturbed; one that is planted as slow is so by far more.
    settle.SLOW_FACTOR = 1_000
    settle.Settler._write_back = lambda self: True  # type: ignore[method-assign]
