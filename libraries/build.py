"""Compile what is in C, of all libraries: `python -m libraries.build` does it in place, setup.py when the package is
installed.

Each library that has C says here what its sources become; all are compiled in one way. The compiler comes with the
package `ziglang`, which is needed for nothing else. This file imports nothing of ours: setup.py runs it by path.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent

_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror")
_NATIVE = ("-mcpu=baseline", "-shared", "-fPIC", "-fvisibility=hidden")
_MODULE = (
    # Without the pass that rewrites addresses: then constant distances stay in the instructions that load and store.
    "--target=wasm32-freestanding", "-mllvm", "-disable-lsr",
    "-msimd128", "-mbulk-memory", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,--export=FFFUDE_VERSION_1_0", "-Wl,-z,stack-size=65536",
)  # fmt: skip


@dataclass(frozen=True)
class Product:
    """One file that the compiler makes of sources of one folder."""

    folder: str
    """Below libraries/; the product lies there too. Sources are named without it: a module is the same bytes wherever
    the checkout lies."""
    name: str
    sources: tuple[str, ...]
    options: tuple[str, ...] = _NATIVE


def native_name(library: str) -> str:
    """What a native library of that name is called on this machine."""
    return {"darwin": f"lib{library}.dylib", "win32": f"{library}.dll"}.get(sys.platform, f"lib{library}.so")


PRODUCTS = {
    "f3": (
        Product("f3/kernels", native_name("f3_kernels"), ("decode.c", "encode.c", "native.c")),
        Product("f3/kernels", "core.wasm", ("decode.c", "guest.c"), _MODULE),
        *(
            Product("f3/examples", f"{name}.wasm", (f"{name}.c",), (*_MODULE, "-I../kernels"))
            for name in ("linear", "windows")
        ),
    ),
    "document_store": (
        Product(
            "document_store/kernels",
            native_name("document_store"),
            tuple(sorted(source.name for source in (PACKAGE / "document_store/kernels").glob("*.c"))),
        ),
    ),
}
"""Library -> what is compiled for it."""

WITHOUT = {
    "f3": "the kernels of F3 are not built; it can be read but not written",
    "document_store": "the kernels of the document store are not built; it does all in Python, many times slower",
}
"""Library -> what is so where its compilation fails."""


def build(into: Path, library: str) -> list[Path]:
    """All products of one library, into a copy of the folder libraries/ or into itself. Raises
    subprocess.CalledProcessError with the compiler's words, and OSError."""
    made = []
    for product in PRODUCTS[library]:
        target = into.resolve() / product.folder / product.name
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside it first: a process that has the file open keeps what it has.
        fresh = target.with_name(f"{target.name}.new")
        command = [*_COMPILER, *product.options, "-o", str(fresh), *product.sources]
        subprocess.run(command, cwd=PACKAGE / product.folder, check=True, capture_output=True, text=True)
        fresh.replace(target)
        made.append(target)
    return made


def main(libraries: list[str]) -> int:
    """Build these libraries in place, all when none is named; the exit code."""
    failed = 0
    for library in libraries or PRODUCTS:
        try:
            for made in build(PACKAGE, library):
                print(f"{made}, {made.stat().st_size} bytes")
        except subprocess.CalledProcessError as error:
            failed = 1
            print(f"{WITHOUT[library]}:\n{error.stderr.strip()}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
