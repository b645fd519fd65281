"""Functions with which formats write and read tables batch by batch.

The time of this code is part of the measured time.
"""

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
"""Number of attempts to remove a folder in which other threads may still create files. If all attempts fail, the folder
is not removed."""


@contextmanager
def whole_or_nothing(location: Path) -> Iterator[None]:
    """Return a context manager that removes the file or folder at `location` if its block raises an error.

    Otherwise a writer that is closed after the error would leave a file that looks complete but lacks rows.
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
    """Return a context manager that yields a temporary path, and moves the file from there to `location` at the end.

    The path is in a temporary folder. If the block raises an error, this folder is removed with the file. Use this for
    writers whose threads may try to create the file after the call has raised an error. Such a thread fails, because
    the folder no longer exists.
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
    """Yield the batches. If `batches` raises an error, append the error to `broken`, and end without raising it.

    The caller must raise the error in `broken` later. Use this for writers that must not be stopped halfway.
    """
    try:
        yield from batches
    except Exception as error:
        broken.append(error)


def gathered(schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield the rows of the batches as tables of `rows` rows each. The last table may be smaller. Copies no data.

    Use this for writers that write each table that they get as a separate unit, such as a row group.
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
    """Yield the rows of a batch as non-empty tables of at most `rows` rows. Copies no data."""
    import pyarrow as pa

    for start in range(0, batch.num_rows, rows):
        yield pa.Table.from_batches([batch.slice(start, rows)])


def tables(batches: Iterable[pa.RecordBatch], columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield the rows of a reader's batches as tables of at most `rows` rows, with the columns in the given order."""
    for batch in batches:
        for piece in pieces(batch, rows):
            yield piece.select(list(columns))
