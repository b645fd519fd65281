"""Compile what the harness has in C: `python -m bench_runner.build` in place; setup.py when it is installed.

The compiler comes with the package `ziglang`, as for the kernels of F3. This file imports nothing of ours: setup.py
runs it by path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent

FOLDERS = {"device": "machine/device", "pages": "operations/pages"}
"""What is compiled here, of the one C file of that name, and where."""
WITHOUT = {
    "device": "the loop that reads devices is not built; Python reads them, slower",
    "pages": "the walk through tables is not built; Python touches results, and the shortest calls cannot be told",
}
"""What is so where that fails; setup.py asks every build.py for it."""

_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_SHARED = ("-mcpu=baseline", "-shared", "-fPIC", "-fvisibility=hidden")


def library_of(name: str, package: Path = PACKAGE) -> Path:
    """Where the library of one of them lies."""
    return package / FOLDERS[name] / f"lib{name}.so"


def build(into: Path, name: str) -> None:
    """One library, into a copy of this package's folder or into itself. Raises subprocess.CalledProcessError with the
    compiler's words, and OSError."""
    target = library_of(name, into.resolve())
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside it first: a process that has the file open keeps what it has.
    fresh = target.with_name(f"{target.name}.new")
    command = [*_COMPILER, *_SHARED, "-o", str(fresh), f"{FOLDERS[name]}/{name}.c"]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, text=True)
    fresh.replace(target)


def main() -> int:
    """Build in place; the exit code."""
    failed = 0
    for name, without in WITHOUT.items():
        try:
            build(PACKAGE, name)
            print(library_of(name))
        except subprocess.CalledProcessError as error:
            failed = 1
            print(f"{without}:\n{error.stderr.strip()}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
