"""Compile the kernels: one C source becomes the native library and the Wasm module that files carry.

`python -m formats.f3.build` does it in place; setup.py does it when the package is installed. The compiler comes with
the package `ziglang`, which is needed for nothing else. This file imports nothing of ours: setup.py runs it by path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent / "kernels"
LIBRARY_NAME = {"darwin": "libf3_kernels.dylib", "win32": "f3_kernels.dll"}.get(sys.platform, "libf3_kernels.so")
MODULE_NAME = "core.wasm"

_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror")
_NATIVE = ("-mcpu=baseline", "-shared", "-fPIC", "-fvisibility=hidden")
_MODULE = (
    "--target=wasm32-freestanding", "-msimd128", "-mbulk-memory", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,--export=FFFUDE_VERSION_1_0", "-Wl,-z,stack-size=65536",
)  # fmt: skip


def build(into: Path) -> None:
    """Both products into a folder. Raises subprocess.CalledProcessError with the compiler's words, and OSError."""
    into.mkdir(parents=True, exist_ok=True)
    # Sources are named without their folder: the module is the same bytes wherever the checkout lies.
    _compile(*_NATIVE, "-o", str(into.resolve() / LIBRARY_NAME), "decode.c", "encode.c", "native.c")
    _compile(*_MODULE, "-o", str(into.resolve() / MODULE_NAME), "decode.c", "guest.c")


def _compile(*arguments: str) -> None:
    subprocess.run([*_COMPILER, *arguments], cwd=SOURCES, check=True, capture_output=True, text=True)


def main() -> int:
    """Build in place; the exit code."""
    try:
        build(SOURCES)
    except subprocess.CalledProcessError as error:
        print(f"the kernels could not be compiled:\n{error.stderr.strip()}", file=sys.stderr)
        return 1
    print(f"{SOURCES / LIBRARY_NAME}, {(SOURCES / MODULE_NAME).stat().st_size} bytes of {MODULE_NAME}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
