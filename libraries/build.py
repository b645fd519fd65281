"""Compile the C sources of all libraries.

`python -m libraries.build` compiles in place; setup.py does it when the package is installed. The compiler comes with
the package `ziglang`, which nothing else needs. setup.py loads this file by its path, so it must not import other
modules of the project.
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
    # Skip the pass that rewrites addresses, so that loads and stores keep their constant offsets.
    "--target=wasm32-freestanding", "-mllvm", "-disable-lsr",
    "-msimd128", "-mbulk-memory", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,--export=FFFUDE_VERSION_1_0", "-Wl,-z,stack-size=65536",
)  # fmt: skip


@dataclass(frozen=True)
class Product:
    """A file that the compiler makes from sources of one folder."""

    folder: str
    """Folder under libraries/ that holds sources and product. The compiler runs in it, so that a module has the same
    bytes wherever the checkout is."""
    name: str
    sources: tuple[str, ...]
    options: tuple[str, ...] = _NATIVE


def native_name(library: str) -> str:
    """Return the file name of a native library on this platform."""
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
"""Library -> files to compile."""

WITHOUT = {
    "f3": "the kernels of F3 are not built; F3 files can be read but not written",
    "document_store": "the kernels of the document store are not built; it runs in Python, many times slower",
}
"""Library -> consequence of a failed compilation."""


def build(into: Path, library: str) -> list[Path]:
    """Compile all products of a library and return their paths.

    `into` is the folder libraries/ or a copy of it. Raises OSError, or subprocess.CalledProcessError with the
    compiler's output.
    """
    made = []
    for product in PRODUCTS[library]:
        target = into.resolve() / product.folder / product.name
        target.parent.mkdir(parents=True, exist_ok=True)
        # Rename at the end: a process that has the old file open keeps it.
        fresh = target.with_name(f"{target.name}.new")
        command = [*_COMPILER, *product.options, "-o", str(fresh), *product.sources]
        subprocess.run(command, cwd=PACKAGE / product.folder, check=True, capture_output=True, text=True)
        fresh.replace(target)
        made.append(target)
    return made


def main(libraries: list[str]) -> int:
    """Build the given libraries in place (all by default) and return the exit code."""
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
