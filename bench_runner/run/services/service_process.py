"""Entry point of every service. The process `python -m bench_runner.run.services.service_process PARENT WORD...`
replaces itself with `python -P WORD...`.

The service dies with the run, however the run ends. Ctrl-C reaches only the run. If memory runs out, the service is
killed first.
"""

from __future__ import annotations

import os
import sys

from bench_runner.machine import linux


def main() -> None:
    """Set the properties that survive exec, then exec the service."""
    linux.die_with_parent(int(sys.argv[1]))
    os.setsid()
    linux.go_first_when_memory_runs_out()
    os.execv(sys.executable, [sys.executable, "-P", *sys.argv[2:]])


if __name__ == "__main__":
    main()
