"""Compile the C code of this package. `python -m bench_runner.build` compiles in place. setup.py compiles during
installation.

The compiler comes from the Python package `ziglang`. This file imports no other module of this project, because
setup.py executes it by its path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent

FOLDERS = {"device": "machine/device", "pages": "operations/pages"}
"""The folder of each C file. The keys are file names without suffix."""
WITHOUT = {
    "device": "the loop that probes devices is not built; Python is used instead, which is slower",
    "pages": "the code that touches tables is not built; Python is used, which is too slow for the shortest calls",
}
"""The message to show if a library cannot be compiled. The keys are names of libraries. setup.py reads WITHOUT from
every build.py."""

_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_SHARED = ("-mcpu=baseline", "-shared", "-fPIC", "-fvisibility=hidden")


def library_of(name: str, package: Path = PACKAGE) -> Path:
    """Return the path of a compiled library."""
    return package / FOLDERS[name] / f"lib{name}.so"


def build(into: Path, name: str) -> None:
    """Compile one library. `into` is the folder of this package, or a copy of this folder. Raises OSError, or
    subprocess.CalledProcessError with the compiler's output."""
    target = library_of(name, into.resolve())
    target.parent.mkdir(parents=True, exist_ok=True)
    # Compile to another file first, because a process may have the old file open and must keep it.
    fresh = target.with_name(f"{target.name}.new")
    command = [*_COMPILER, *_SHARED, "-o", str(fresh), f"{FOLDERS[name]}/{name}.c"]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, text=True)
    fresh.replace(target)


def main() -> int:
    """Compile all libraries in place. Return the exit code: 1 if a library could not be compiled, else 0."""
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
