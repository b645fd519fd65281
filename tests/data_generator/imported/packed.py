"""Compressed files whose names show the compression."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa


def _zip(content: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(path.stem, content)
        # As macOS packs it.
        archive.writestr(f"__MACOSX/._{path.stem}", b"notes")


_WRITERS: dict[str, Callable[[bytes, Path], object]] = {
    ".gz": lambda content, path: path.write_bytes(gzip.compress(content)),
    ".bz2": lambda content, path: path.write_bytes(bz2.compress(content)),
    ".xz": lambda content, path: path.write_bytes(lzma.compress(content)),
    ".zst": lambda content, path: path.write_bytes(pa.compress(content, "zstd", asbytes=True)),
    ".zip": _zip,
}
ENDINGS = tuple(_WRITERS)


def write(content: bytes, path: Path) -> Path:
    """Write the content, compressed according to the suffix."""
    _WRITERS[path.suffix.lower()](content, path)
    return path
