"""Tables in pieces, for engines that write and read them so. Inside the clock."""

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
"""How often a file may come between the listing of a folder and its end before it is left there."""


@contextmanager
def whole_or_nothing(location: Path) -> Iterator[None]:
    """Where the block raises, remove what it has begun at `location`: what closes in order looks complete, with the
    rows that had come."""
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
    """A place in a folder of its own; what lies there after the block is moved to `location`, and nothing where it
    raises. For writers whose threads may still open the file when the call has already raised: they find no folder."""
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
    """The same batches, which end where their source raises: what it raised lies in `broken` then, and the caller has
    to raise it. For writers that a source must not stop halfway."""
    try:
        yield from batches
    except Exception as error:
        broken.append(error)


def gathered(schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of so many, the last one of fewer: for writers that make a unit of what they are given.
    Nothing is copied."""
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
    """A batch as tables of at most so many rows, none of them empty. Nothing is copied."""
    import pyarrow as pa

    for start in range(0, batch.num_rows, rows):
        yield pa.Table.from_batches([batch.slice(start, rows)])


def tables(batches: Iterable[pa.RecordBatch], columns: Sequence[str], rows: int) -> Iterator[Any]:
    """What a reader gives batch by batch, as tables with the columns in this order and at most so many rows."""
    for batch in batches:
        for piece in pieces(batch, rows):
            yield piece.select(list(columns))
