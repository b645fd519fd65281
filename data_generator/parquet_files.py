"""Write a data set as many Parquet files with a fixed number of rows per file and row group.

Some measurements need files instead of tables in memory. The files are written once, to a separate folder in the cache.
A list with the size and SHA-256 of each file is written last, so a folder with a list is complete. At most the rows of
one file are in memory.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data_generator.cache import moved_into_place
from data_generator.dataset import Dataset
from data_generator.errors import DataError

VERSION = 1
"""Version of the code that writes the files. Files of each version are in a separate folder."""
_LIST = "files.json"


@dataclass(frozen=True)
class Layout:
    """Rows per file and row group. `file_rows` is a multiple of `row_group_rows`, so all row groups are full, except in
    the last file."""

    file_rows: int
    row_group_rows: int
    codec: str = "snappy"

    def __post_init__(self) -> None:
        if self.row_group_rows < 1 or self.file_rows < 1 or self.file_rows % self.row_group_rows:
            raise DataError(
                "The rows per file must be a multiple of the rows per row group, and both at least 1 "
                f"(got {self.file_rows:,} rows per file, {self.row_group_rows:,} per row group).",
                f"Choose e.g. {max(self.row_group_rows, 1) * 20:,} rows per file.",
            )


@dataclass(frozen=True)
class ParquetFiles:
    """The files in `folder`, in the order of their rows, with the total numbers of rows and bytes."""

    folder: Path
    paths: tuple[Path, ...]
    rows: int
    size_bytes: int


def prepare(
    dataset: Dataset, layout: Layout, folder: Path, *, on_rows: Callable[[int], None] | None = None
) -> ParquetFiles:
    """Return a data set's Parquet files below `folder`. Write the files first if some are missing or damaged.

    `on_rows` is called with the number of rows written so far. An incomplete folder is removed and written again.
    Raises DataError if the files cannot be written.
    """
    key = hashlib.sha256(json.dumps(_key(dataset, layout)).encode()).hexdigest()[:12]
    target = folder / f"{dataset.name.partition('[')[0]}-{dataset.rows}-{key}"
    found = _listed(target)
    if found is not None:
        return found
    shutil.rmtree(target, ignore_errors=True)
    try:
        target.mkdir(parents=True)
        return _written(dataset, layout, target, on_rows)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        raise DataError(
            f"The Parquet files of {dataset.name} cannot be stored in {target}: {reason}.",
            "Free space there, or request fewer rows." if full else "Name another folder.",
        ) from error


def _key(dataset: Dataset, layout: Layout) -> Sequence[object]:
    source = sorted(dataset.source.items())
    return [VERSION, pa.__version__, dataset.name, dataset.rows, dataset.version, source, asdict(layout)]


def _written(dataset: Dataset, layout: Layout, target: Path, on_rows: Callable[[int], None] | None) -> ParquetFiles:
    listed: dict[str, Mapping[str, object]] = {}
    rows = 0
    for number, table in enumerate(_cut(dataset, layout.file_rows)):
        path = target / f"part-{number:05}.parquet"
        pq.write_table(table, path, row_group_size=layout.row_group_rows, compression=layout.codec)
        rows += table.num_rows
        listed[path.name] = {"rows": table.num_rows, "bytes": path.stat().st_size, "sha256": _digest(path)}
        if on_rows is not None:
            on_rows(rows)
    with moved_into_place(target / _LIST) as file:
        file.write((json.dumps(listed, indent=1) + "\n").encode())
    found = _listed(target)
    if found is None:
        raise DataError(f"{target} differs from what was just written.", "Check whether another program writes to it.")
    return found


def _cut(dataset: Dataset, rows: int) -> Iterator[pa.Table]:
    """Yield the table in pieces of `rows` rows. One piece is in memory at a time."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in dataset.batches():
        while held + batch.num_rows >= rows:
            waiting.append(batch.slice(0, rows - held))
            batch = batch.slice(rows - held)
            yield pa.Table.from_batches(waiting, dataset.schema)
            waiting, held = [], 0
        if batch.num_rows:
            waiting.append(batch)
            held += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting, dataset.schema)


def _listed(target: Path) -> ParquetFiles | None:
    """Return the files that the list in `target` names; None if the list or a file is missing, truncated or changed."""
    try:
        listed = json.loads((target / _LIST).read_text())
        paths = tuple(target / name for name in sorted(listed))
        whole = all(
            path.stat().st_size == listed[path.name]["bytes"] and _digest(path) == listed[path.name]["sha256"]
            for path in paths
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not whole:
        return None
    return ParquetFiles(
        target, paths, sum(about["rows"] for about in listed.values()), sum(about["bytes"] for about in listed.values())
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
