"""Compile the C sources of all libraries.

`python -m libraries.build` compiles in place. setup.py compiles when the package is installed. It loads this file by
its path, so this file must not import other modules of the project. The compiler is in the package `ziglang`, which is
needed only here.
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
    # Skip LLVM's loop strength reduction, which rewrites addresses, so that loads and stores keep constant offsets.
    "--target=wasm32-freestanding", "-mllvm", "-disable-lsr",
    "-msimd128", "-mbulk-memory", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,--export=FFFUDE_VERSION_1_0", "-Wl,-z,stack-size=65536",
)  # fmt: skip


@dataclass(frozen=True)
class Product:
    """A file that is compiled from the sources in one folder."""

    folder: str
    """Folder under libraries/ with the sources and the compiled file. The compiler runs in this folder, so the compiled
    bytes do not depend on the path of the checkout."""
    name: str
    sources: tuple[str, ...]
    options: tuple[str, ...] = _NATIVE


def native_name(library: str) -> str:
    """Return the file name of a native library on this platform."""
    return {"darwin": f"lib{library}.dylib", "win32": f"{library}.dll"}.get(sys.platform, f"lib{library}.so")


PRODUCTS = {
    "f3": (
        Product("f3/kernels", native_name("f3_kernels"), ("decode.c", "pick.c", "encode.c", "native.c")),
        Product("f3/kernels", "core.wasm", ("decode.c", "pick.c", "guest.c"), _MODULE),
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
"""Library -> what does not work if its compilation failed."""


def build(into: Path, library: str) -> list[Path]:
    """Compile all products of a library and return their paths.

    `into` is the folder libraries/ or a copy of it. Raises OSError if the compiler cannot be run, and
    subprocess.CalledProcessError with the compiler's output if it fails.
    """
    made = []
    for product in PRODUCTS[library]:
        target = into.resolve() / product.folder / product.name
        target.parent.mkdir(parents=True, exist_ok=True)
        # Compile to a temporary file and rename it, so that a process that has the old file open keeps the old content.
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
