"""Cache each generated or imported data set as an Arrow IPC file with a digest, in the user's cache folder.

A file is written under a temporary name in the same folder, flushed to disk (fsync) and then renamed, so no run sees a
partial file. Whenever a file is used, its content is checked against the digest. If the content has changed, the data
set is made again. At most one batch is in memory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import platformdirs
import pyarrow as pa

from data_generator.dataset import Dataset
from data_generator.digest import TableDigest
from data_generator.errors import DataError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file exceeds the largest size allowed",
}
PARTIAL = ".partial"
"""Suffix of a file that is being written. The writing process holds a lock on this file."""
_ABANDONED_AFTER_S = 60.0


@dataclass(frozen=True)
class StoredDataset:
    """A complete data set in the cache. Its digest was recorded when the file was written."""

    name: str
    path: Path
    """Arrow IPC file with one record batch for each batch of the data set."""
    digest: str
    rows: int
    schema: pa.Schema
    size_bytes: int


def default_folder() -> Path:
    """Return the cache folder for data sets: FORMAT_BENCH_CACHE, or else the user's cache folder."""
    named = os.environ.get("FORMAT_BENCH_CACHE")
    if named:
        return Path(named)
    return platformdirs.user_cache_path("format-bench", appauthor=False) / "datasets"


def prepare(dataset: Dataset, folder: Path, *, on_rows: Callable[[int], None] | None = None) -> StoredDataset:
    """Return the data set from the cache. Make it first if the cached file is missing or damaged.

    `on_rows` is called with the number of rows made so far. Concurrent runs are safe, because each run writes a
    separate temporary file with the same bytes. Raises DataError if the file cannot be written.
    """
    path = folder / f"{_stem(dataset.name, dataset.rows, dataset.version, dataset.source)}.arrow"
    with errors_told(f"{dataset.name}, {dataset.rows:,} rows", folder):
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        return _load(dataset, path) or _make(dataset, path, on_rows)


@contextlib.contextmanager
def errors_told(what: str, folder: Path) -> Iterator[None]:
    """Turn an OSError of the `with` block into a DataError, which states that `what` cannot be stored in `folder`."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise DataError(
            f"{what}: cannot be stored in {folder}: {reason}.",
            "Free space there, request fewer rows, or set FORMAT_BENCH_CACHE to another folder.",
        ) from error


def read_table(path: Path, rows: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the first `rows` rows (default: all) of a stored data set, one chunk per stored batch.

    The rows are in private memory, not mapped from the file. Only the requested rows and columns are read. If only part
    of a batch is needed, this part is copied from a memory mapping of the file.
    """
    with pa.OSFile(str(path)) as file, pa.memory_map(str(path)) as mapping:
        mapped = pa.ipc.open_file(mapping)
        schema = mapped.schema
        names = schema.names if columns is None else list(columns)
        options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
        private = pa.ipc.open_file(file, options=options)
        batches: list[pa.RecordBatch] = []
        missing = rows
        for index in range(mapped.num_record_batches):
            stored = mapped.get_batch(index)
            if missing is not None and missing < stored.num_rows:
                batches.append(_copied(stored.slice(0, missing).select(names)))
                break
            batches.append(private.get_batch(index).select(names))
            missing = None if missing is None else missing - stored.num_rows
        selected = pa.schema([schema.field(name) for name in names], schema.metadata)
        return pa.Table.from_batches([batch for batch in batches if batch.num_rows], selected)


def read_rows(path: Path, start: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield `rows` rows of a stored data set from row `start` (counted from 0) as copies, not mapped from the file."""
    with pa.memory_map(str(path)) as mapping:
        stored = pa.ipc.open_file(mapping)
        first = 0
        for index in range(stored.num_record_batches):
            batch = stored.get_batch(index)
            begin, end = max(start - first, 0), min(start + rows - first, batch.num_rows)
            if begin < end:
                yield _copied(batch.slice(begin, end - begin))
            first += batch.num_rows


def kept_schema(name: str, rows: int, version: int, source: Mapping[str, str], folder: Path) -> pa.Schema | None:
    """Return the schema of a data set in the cache; None if the data set is missing or unreadable."""
    path = folder / f"{_stem(name, rows, version, source)}.arrow"
    try:
        with pa.memory_map(str(path)) as mapping:
            return pa.ipc.open_file(mapping).schema
    except (pa.ArrowException, OSError, ValueError):
        return None


def columns_with_nulls(path: Path) -> frozenset[str]:
    """Return the columns of a cached data set that have missing values. Reads only the file's metadata."""
    with pa.memory_map(str(path)) as mapping:
        stored = pa.ipc.open_file(mapping)
        names = stored.schema.names
        found: set[str] = set()
        for index in range(stored.num_record_batches):
            batch = stored.get_batch(index)
            found.update(name for name, column in zip(names, batch.columns, strict=True) if column.null_count)
        return frozenset(found)


def read_facts(name: str, version: int, source: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return the facts, such as the number of rows, that `keep_facts` stored for this `source`; {} if there are none or
    they are damaged."""
    try:
        facts = json.loads(_facts_path(name, version, source, folder).read_text())
    except (OSError, ValueError):
        return {}
    is_whole = isinstance(facts, dict) and all(type(value) is int or _is_texts(value) for value in facts.values())
    return facts if is_whole else {}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def keep_facts(name: str, version: int, source: Mapping[str, str], folder: Path, facts: Mapping[str, Any]) -> None:
    """Store facts that are known only after reading the whole source, such as its number of rows.

    Values are integers and lists of texts. `source` identifies the data, so it must change whenever the data change.
    Raises DataError if the file cannot be written.
    """
    with errors_told(name, folder), moved_into_place(_facts_path(name, version, source, folder)) as file:
        file.write(json.dumps(facts).encode())


def _facts_path(name: str, version: int, source: Mapping[str, str], folder: Path) -> Path:
    key = json.dumps([name, version, sorted(source.items())])
    return folder / f"{_readable(name)}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.facts"


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a copy of the batch in memory. The size of the copy is computed first, because a buffer that grows would
    need twice the memory."""
    size = pa.MockOutputStream()
    _write_stream(batch, size)
    buffer = pa.allocate_buffer(size.size())
    _write_stream(batch, pa.FixedSizeBufferWriter(buffer))
    with pa.ipc.open_stream(buffer) as reader:
        return reader.read_next_batch()


def _write_stream(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _stem(name: str, rows: int, version: int, source: Mapping[str, str]) -> str:
    """Return a readable file name with a hash of everything that determines the data set's bytes."""
    key = json.dumps([name, rows, version, sorted(source.items())])
    return f"{_readable(name)}-{rows}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _readable(name: str) -> str:
    return re.sub(r"[^a-z0-9.=]+", "-", name).strip("-")[:60]


def _load(dataset: Dataset, path: Path) -> StoredDataset | None:
    """Return the data set in the cache; None if it is missing, truncated, changed or unreadable."""
    try:
        digest = json.loads(path.with_suffix(".json").read_text())["digest"]
        found = TableDigest(dataset.schema)
        rows = 0
        with pa.OSFile(str(path)) as file:
            reader = pa.ipc.open_file(file)
            if not reader.schema.equals(dataset.schema):
                return None
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                found.update(batch)
                rows += batch.num_rows
    except (FileNotFoundError, ValueError, KeyError, TypeError, pa.ArrowException, OSError):
        return None
    if found.hexdigest() != digest or rows != dataset.rows:
        return None
    return StoredDataset(dataset.name, path, digest, rows, dataset.schema, path.stat().st_size)


def _make(dataset: Dataset, path: Path, on_rows: Callable[[int], None] | None) -> StoredDataset:
    digest = TableDigest(dataset.schema)
    rows = 0
    # Later batches of an imported table may add categories. An IPC file can extend a dictionary but not replace it.
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with moved_into_place(path) as file, pa.ipc.new_file(file, dataset.schema, options=options) as writer:
        for batch in dataset.batches():
            writer.write_batch(batch)
            digest.update(batch)
            rows += batch.num_rows
            if on_rows is not None:
                on_rows(rows)
    about = {
        "dataset": dataset.name,
        "rows": rows,
        "version": dataset.version,
        "source": dict(dataset.source),
        "digest": digest.hexdigest(),
        "pyarrow": pa.__version__,
    }
    with moved_into_place(path.with_suffix(".json")) as file:
        file.write((json.dumps(about, indent=1) + "\n").encode())
    return StoredDataset(dataset.name, path, digest.hexdigest(), rows, dataset.schema, path.stat().st_size)


@contextlib.contextmanager
def moved_into_place(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that is moved to `path` atomically at the end, or removed after an error.

    The file is locked until then, so that `remove_abandoned` does not remove it.
    """
    descriptor, temporary = tempfile.mkstemp(suffix=PARTIAL, prefix=f"{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files without a lock, which runs leave behind when they are killed.

    Recent files are skipped, because a run may have created a file but not locked it yet.
    """
    for left_over in folder.glob(f"*{PARTIAL}"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), left_over.open("rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > _ABANDONED_AFTER_S:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left_over.unlink(missing_ok=True)
