"""The process that opens the user's images.

    python -m data_generator.imported.images.image_import PARENT MEMORY_BYTES PROGRESS

It decodes images one by one, and answers as described in data_generator.imported.import_process, with these additional
letters:

n  number of images to come, as JSON
b  a batch of images, as an Arrow IPC message with the schema of data_generator.images
w  warnings of two lines each, as JSON, once after all batches

This module does not depend on caches or data sets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from data_generator.imported.images.image_input import CACHED, FILES, PARQUET, SAVED
from data_generator.imported.import_process import Progress, Reader, Task, opened, serve
from data_generator.imported.refusal import Refused, printable

COUNT, BATCH, REMARKS = b"n", b"b", b"w"

_ROWS_AT_ONCE = 64

Found = tuple[int, Iterator[tuple[bytes, int]]]
"""Number of images, and an iterator of (content of an image file, label).

The functions that return this take a task. A task has the fields of UserInput (`path`, `kind`, and `files` with `name`,
`path` and `label`), the maximum number of images `rows` (or None), and `batch_bytes`, the size of a batch's pixels.
"""


# --- where the files' contents come from ---------------------------------------------------------------------------


def _from_files(task: Task, progress: Progress) -> Found:
    files = task["files"]

    def contents() -> Iterator[tuple[bytes, int]]:
        for file in files:
            progress.at(os.path.join(task["path"], file["name"]))
            with opened(file["path"]) as stream:
                yield stream.read(), file["label"]

    return len(files), contents()


def _from_parquet(task: Task, progress: Progress) -> Found:
    import pyarrow.parquet as pq

    from data_generator.imported.images import image_columns

    names = [_parquet_name(task, file) for file in task["files"]]
    chosen, count = [], 0
    for name, file in zip(names, task["files"], strict=True):
        progress.at(name)
        with opened(file["path"]) as stream, pq.ParquetFile(stream) as parquet:
            chosen.append(image_columns.choose(parquet.schema_arrow))
            count += parquet.metadata.num_rows

    def contents() -> Iterator[tuple[bytes, int]]:
        for name, file, columns in zip(names, task["files"], chosen, strict=True):
            with opened(file["path"]) as stream, pq.ParquetFile(stream, pre_buffer=False) as parquet:
                batches = parquet.iter_batches(_ROWS_AT_ONCE, columns=[columns.image, columns.label], use_threads=False)
                yield from _numbered(batches, columns, name, progress)

    return count, contents()


def _parquet_name(task: Task, file: Mapping[str, Any]) -> str:
    is_file_itself = file["path"] == task["path"]
    return task["path"] if is_file_itself else os.path.join(task["path"], file["name"])


def _numbered(batches: Any, columns: Any, name: str, progress: Progress) -> Iterator[tuple[bytes, int]]:
    """Yield (image file, label) for each row of the batches. Set the progress to the number of the row."""
    from data_generator.imported.images import image_columns

    row = 0
    progress.at(f"{name}, row 0")
    for batch in batches:
        for content in image_columns.rows(batch, columns):
            yield content
            row += 1
            progress.at(f"{name}, row {row:,}")


def _from_saved(task: Task, progress: Progress) -> Found:
    present = {file["name"] for file in task["files"]}
    listed = [entry["filename"] for entry in _note(task, "state.json", progress)["_data_files"]]
    strange = [name for name in listed if name not in present]
    if strange:
        raise Refused(f"lists files that are missing from its folder: {', '.join(map(str, strange))}")
    _check_opens(task, progress)
    progress.at(task["path"])
    import datasets

    return _from_dataset(datasets.load_from_disk(task["path"]), task, progress)


def _check_opens(task: Task, progress: Progress) -> None:
    """Raise Refused for a file that cannot be opened or is a link.

    Call this before the `datasets` library opens the same files, because the library does not check them.
    """
    for file in task["files"]:
        progress.at(os.path.join(task["path"], file["name"]))
        with opened(file["path"]):
            pass


def _note(task: Task, name: str, progress: Progress) -> Any:
    """Return the content of the JSON file `name`, which the `datasets` library stored next to the tables with the
    images."""
    path = os.path.join(task["path"], name)
    progress.at(path)
    with opened(path) as stream:
        return json.load(stream)


def _from_cached(task: Task, progress: Progress) -> Found:
    train = (_note(task, "dataset_info.json", progress).get("splits") or {}).get("train") or {}
    _check_opens(task, progress)
    progress.at(task["path"])
    import datasets

    dataset = datasets.concatenate_datasets([datasets.Dataset.from_file(file["path"]) for file in task["files"]])
    expected = train.get("num_examples", len(dataset))
    if expected != len(dataset):
        reason = f"has {len(dataset):,} images, but dataset_info.json states {expected:,}"
        raise Refused(reason, "Load the data set again with the library 'datasets'.")
    return _from_dataset(dataset, task, progress)


def _from_dataset(dataset: Any, task: Task, progress: Progress) -> Found:
    from data_generator.imported.images import image_columns

    columns = image_columns.choose(dataset.data.schema)
    as_stored = dataset.with_format("arrow", columns=[columns.image, columns.label])
    return len(dataset), _numbered(as_stored.iter(batch_size=_ROWS_AT_ONCE), columns, task["path"], progress)


_SOURCES: Mapping[str, Callable[[Task, Progress], Found]] = {
    FILES: _from_files,
    PARQUET: _from_parquet,
    SAVED: _from_saved,
    CACHED: _from_cached,
}


# --- from contents to frames ---------------------------------------------------------------------------------------


def frames(task: Task, progress: Progress) -> Iterator[tuple[bytes, Any]]:
    """Yield (letter, content) for each message of the answer to a task, except the final message.

    Raises Refused if there are no images, or if one of them cannot be decoded without change.
    """
    from data_generator.imported.images import image_decoder

    image_decoder.be_strict()
    count, contents = _SOURCES[task["kind"]](task, progress)
    taken = count if task["rows"] is None else min(count, task["rows"])
    if taken == 0:
        raise Refused("has no images (0 rows)", "Name an input with images.", task["path"])
    yield COUNT, json.dumps(taken).encode()
    cut: list[str] = []
    for batch in _batches(islice(contents, taken), task["batch_bytes"], progress, cut):
        yield BATCH, batch.serialize()
    yield REMARKS, json.dumps(_remarks(cut)).encode()


def _remarks(cut: Sequence[str]) -> list[str]:
    if not cut:
        return []
    return [
        f"only the first view of {len(cut):,} images is used, e.g. of {printable(cut[0])}: MPO files may have previews "
        "or other views after the photograph\nnothing to do if the photograph is intended"
    ]


def _batches(
    contents: Iterator[tuple[bytes, int]], batch_bytes: int, progress: Progress, cut: list[str]
) -> Iterator[Any]:
    """Yield batches of images. If only the first of several views in a file is used, append the name of the image to
    `cut`."""
    from data_generator.imported.images import image_decoder

    pixels, rows = bytearray(), []
    for content, label in contents:
        picture = image_decoder.decode(content)
        if picture.frames_left_out:
            cut.append(progress.where)
        pixels += picture.pixels
        rows.append((picture.height, picture.width, picture.channels, label))
        if len(pixels) >= batch_bytes:
            yield _batch(pixels, rows)
            pixels, rows = bytearray(), []
    if rows:
        yield _batch(pixels, rows)


def _batch(pixels: bytearray, rows: list[tuple[int, int, int, int]]) -> Any:
    import numpy as np

    from data_generator import images

    heights, widths, channels, labels = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    heights32, widths32, channels32 = (side.astype(np.int32) for side in (heights, widths, channels))
    return images.batch(pixels, heights32, widths32, channels32, labels)


READER = Reader(
    frames,
    install={"PIL": ("pillow", "images"), "datasets": ("datasets", "datasets")},
    smaller="Reduce its size, or leave it out.",
    may_write=True,
)

if __name__ == "__main__":
    serve(READER)
