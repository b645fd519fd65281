"""Help engines to write and read streams of tables. This code is timed."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


RACES = 100
"""Attempts to remove a folder in which files may still appear. After that, the folder stays."""


@contextmanager
def whole_or_nothing(location: Path) -> Iterator[None]:
    """Remove the file or folder at `location` if the block raises.

    Writers that are closed properly would otherwise leave a file that looks complete but holds only some rows.
    """
    try:
        yield
    except BaseException:
        if location.is_dir():
            shutil.rmtree(location)
        else:
            location.unlink(missing_ok=True)
        raise


@contextmanager
def apart_until_whole(location: Path) -> Iterator[Path]:
    """Yield a path in a separate folder, and move its file to `location` after the block; remove it on an error.

    Use this for writers whose threads may still open the file after the call has raised. They then find no folder.
    """
    folder = location.with_name(f"{location.name}.begun")
    folder.mkdir()
    try:
        yield folder / location.name
        (folder / location.name).replace(location)
    finally:
        for _ in range(RACES):
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                break
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise


def until_it_breaks(batches: Iterable[Any], broken: list[Exception]) -> Iterator[Any]:
    """Yield the batches, and end without an error if their source raises.

    The error is then in `broken`, and the caller has to raise it. Use this for writers that must not stop halfway.
    """
    try:
        yield from batches
    except Exception as error:
        broken.append(error)


def gathered(schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield the rows in tables of `rows` rows, the last one with fewer. Copies nothing.

    Use this for writers that make one unit of each table.
    """
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in batches:
        done = 0
        while waiting_rows + batch.num_rows - done >= rows:
            part = batch.slice(done, rows - waiting_rows)
            yield pa.Table.from_batches([*waiting, part], schema)
            done += part.num_rows
            waiting, waiting_rows = [], 0
        if done < batch.num_rows:
            waiting.append(batch.slice(done))
            waiting_rows += batch.num_rows - done
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def pieces(batch: pa.RecordBatch, rows: int) -> Iterator[Any]:
    """Yield a batch as tables of at most `rows` rows, none of them empty. Copies nothing."""
    import pyarrow as pa

    for start in range(0, batch.num_rows, rows):
        yield pa.Table.from_batches([batch.slice(start, rows)])


def tables(batches: Iterable[pa.RecordBatch], columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield a reader's batches as tables with the columns in this order and at most `rows` rows."""
    for batch in batches:
        for piece in pieces(batch, rows):
            yield piece.select(list(columns))
