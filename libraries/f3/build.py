"""Compile the kernels: one C source becomes the native library and the Wasm module that files carry.

`python -m libraries.f3.build` does it in place; setup.py does it when the package is installed. The compiler comes with
the package `ziglang`, which is needed for nothing else. This file imports nothing of ours: setup.py runs it by path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent
LIBRARY_NAME = {"darwin": "libf3_kernels.dylib", "win32": "f3_kernels.dll"}.get(sys.platform, "libf3_kernels.so")
MODULE_NAME = "core.wasm"
EXAMPLES = ("linear", "windows")

_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror")
_NATIVE = ("-mcpu=baseline", "-shared", "-fPIC", "-fvisibility=hidden")
_MODULE = (
    # Without the pass that rewrites addresses: then constant distances stay in the instructions that load and store.
    "--target=wasm32-freestanding", "-mllvm", "-disable-lsr",
    "-msimd128", "-mbulk-memory", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,--export=FFFUDE_VERSION_1_0", "-Wl,-z,stack-size=65536",
)  # fmt: skip


def build(into: Path) -> None:
    """The library and all modules, into a copy of this package's folders or into itself. Raises
    subprocess.CalledProcessError with the compiler's words, and OSError."""
    kernels, examples = into.resolve() / "kernels", into.resolve() / "examples"
    kernels.mkdir(parents=True, exist_ok=True)
    examples.mkdir(parents=True, exist_ok=True)
    # Sources are named without their folder: a module is the same bytes wherever the checkout lies.
    _compile("kernels", *_NATIVE, "-o", str(kernels / LIBRARY_NAME), "decode.c", "encode.c", "native.c")
    _compile("kernels", *_MODULE, "-o", str(kernels / MODULE_NAME), "decode.c", "guest.c")
    for name in EXAMPLES:
        _compile("examples", *_MODULE, "-I../kernels", "-o", str(examples / f"{name}.wasm"), f"{name}.c")


def _compile(folder: str, *arguments: str) -> None:
    subprocess.run([*_COMPILER, *arguments], cwd=PACKAGE / folder, check=True, capture_output=True, text=True)


def main() -> int:
    """Build in place; the exit code."""
    try:
        build(PACKAGE)
    except subprocess.CalledProcessError as error:
        print(f"the kernels could not be compiled:\n{error.stderr.strip()}", file=sys.stderr)
        return 1
    module = PACKAGE / "kernels" / MODULE_NAME
    print(f"{PACKAGE / 'kernels' / LIBRARY_NAME}, {module.stat().st_size} bytes of {MODULE_NAME}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
