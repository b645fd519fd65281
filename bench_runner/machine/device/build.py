"""Compile the loop that reads: `python -m bench_runner.machine.device.build` in place; setup.py when it is installed.

The compiler comes with the package `ziglang`, as for the kernels of F3. This file imports nothing of ours: setup.py
runs it by path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent
LIBRARY_NAME = "libdevice_reads.so"

WITHOUT = {"device": "the loop that reads devices is not built; Python reads them, slower"}
"""What is compiled here, and what is so where that fails; setup.py asks every build.py for it."""

_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_SHARED = ("-mcpu=baseline", "-shared", "-fPIC", "-fvisibility=hidden")


def build(into: Path, _name: str = "device") -> None:
    """The library, into a copy of this package's folder or into itself. Raises subprocess.CalledProcessError with the
    compiler's words, and OSError."""
    target = into.resolve()
    target.mkdir(parents=True, exist_ok=True)
    command = [*_COMPILER, *_SHARED, "-o", str(target / LIBRARY_NAME), "device.c"]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, text=True)


def main() -> int:
    """Build in place; the exit code."""
    try:
        build(PACKAGE)
    except subprocess.CalledProcessError as error:
        print(f"the reading loop could not be compiled:\n{error.stderr.strip()}", file=sys.stderr)
        return 1
    print(PACKAGE / LIBRARY_NAME)
    return 0


if __name__ == "__main__":
    sys.exit(main())
