"""Files of earlier writers, which every later version must read natively, and the command that stores another version.

The archive `written/VERSION.tar.xz` holds files as that version wrote them, and the tables that they were made from as
Arrow IPC. A file's name tells its table and rows. Nothing in an archive is made again, because only the writer of that
time makes these files.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from libraries import f3
from libraries.f3.tests.arrays import PATTERNS, TYPES, made
from libraries.f3.tests.tables import varied

FOLDER = Path(__file__).parent / "written"
_ROWS = 1050
"""A complete block of bit packing and part of a second."""


def stored_files() -> Iterator[tuple[str, bytes, pa.Table]]:
    """Yield the name, the bytes and the table of every stored file."""
    for archive in sorted(FOLDER.glob("*.tar.xz")):
        with tarfile.open(archive) as files:
            found = {member.name: files.extractfile(member).read() for member in files.getmembers()}  # type: ignore[union-attr]
        for name in sorted(name for name in found if name.endswith(".f3")):
            _, source, first, rows, _ = name.split(".")
            table = pa.ipc.open_file(found[source + ".arrow"]).read_all().slice(int(first), int(rows))
            yield f"{archive.name.removesuffix('.tar.xz')} {name}", found[name], table


def _flat(rows: int) -> pa.Table:
    """Return a column of each flat type in each pattern, every other one with nulls."""
    rng = np.random.default_rng(48)
    columns = {}
    for arrow_type in TYPES:
        for place, pattern in enumerate(PATTERNS):
            columns[f"{arrow_type} {pattern}"] = made(arrow_type, pattern, rows, rng, 0.2 * (place % 2))
    return pa.table(columns)


def _files() -> Iterator[tuple[str, str, range, dict[str, object]]]:
    """Yield name, source, rows and parameters of the writer for every codec, kind of dictionary and shape."""
    few = range(90)
    yield "default", "flat", range(_ROWS), {}
    for codec in ("zstd", "lz4"):
        yield codec, "flat", few, {"codec": codec}
    for dictionary in ("local", "shared", "best"):
        yield dictionary, "flat", few, {"dictionary": dictionary, "rows_per_unit": 40, "scope_rows": 60}
        yield dictionary, "varied", range(200), {"dictionary": dictionary, "rows_per_unit": 60}
    yield "units", "varied", range(1000), {"rows_per_unit": 300}
    yield "groups", "varied", range(1000), {"rows_per_unit": 128, "row_group_rows": 400, "unit_bytes": 2000}
    yield "checksums", "varied", range(1000), {"rows_per_unit": 128, "checksums": True, "codec": "zstd"}
    yield "one", "varied", range(3, 4), {}
    yield "none", "varied", range(0), {}
    yield "bare", "bare", range(5), {}


def add(version: str) -> None:
    """Store the files of today's writer as a new version. Raises FileExistsError if the version is stored already."""
    sources = {"flat": _flat(_ROWS), "varied": varied(), "bare": pa.table({"a": range(5)}).select([])}
    with tarfile.open(FOLDER / f"{version}.tar.xz", "x:xz", preset=9) as archive:
        for name, table in sources.items():
            expected = io.BytesIO()
            with pa.ipc.new_file(expected, table.schema) as out:
                out.write_table(table)
            _put(archive, f"{name}.arrow", expected)
        for name, source, rows, parameters in _files():
            written = io.BytesIO()
            f3.write(sources[source].slice(rows.start, len(rows)), written, **parameters)  # type: ignore[arg-type]
            _put(archive, f"{name}.{source}.{rows.start}.{len(rows)}.f3", written)


def _put(archive: tarfile.TarFile, name: str, content: io.BytesIO) -> None:
    member = tarfile.TarInfo(name)
    member.size = content.seek(0, io.SEEK_END)
    content.seek(0)
    archive.addfile(member, content)


if __name__ == "__main__":
    add(sys.argv[1])
