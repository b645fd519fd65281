"""Documents as a data set: a table with one row per document, which is a line of JSON text.

The lines of a batch, with their line ends, are contiguous in one buffer, so this buffer is valid JSON Lines. The
schema's metadata contain the name of the key field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

BATCH_BYTES = 32 * 1024 * 1024
"""Approximate bytes of lines per batch."""

_LINE = pa.field("line", pa.large_binary(), nullable=False)
_KEY = b"documents.key"
_LINE_END = 0x0A


def schema(key: str) -> pa.Schema:
    """Return the schema of documents with the top-level field `key` as key."""
    return pa.schema([_LINE], {_KEY: key.encode()})


def is_documents(found: pa.Schema) -> bool:
    """Return whether a data set with this schema contains documents."""
    return found.equals(pa.schema([_LINE]))


def key_of(found: pa.Schema) -> str:
    """Return the name of the documents' key. Raises ValueError for any other schema."""
    metadata = found.metadata or {}
    if not is_documents(found) or _KEY not in metadata:
        raise ValueError(f"This is not the schema of documents with a key (columns: {found.names[:5]}).")
    return metadata[_KEY].decode()


def batch(lines: bytes, key: str) -> pa.RecordBatch:
    """Return a batch that uses the memory of `lines` without copying. Raises ValueError if the last line has no end."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _LINE_END) + 1
    if len(lines) != (int(ends[-1]) if len(ends) else 0):
        raise ValueError("The last document has no line end.")
    offsets = np.zeros(len(ends) + 1, dtype=np.int64)
    offsets[1:] = ends
    array = pa.Array.from_buffers(_LINE.type, len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(lines)])
    return pa.RecordBatch.from_arrays([array], schema=schema(key))


def batches(documents: Iterable[str], key: str) -> Iterator[pa.RecordBatch]:
    """Yield documents (JSON texts without line ends) in batches of about BATCH_BYTES, one at a time."""
    waiting: list[str] = []
    held_bytes = 0
    for document in documents:
        waiting.append(document)
        held_bytes += len(document) + 1
        if held_bytes >= BATCH_BYTES:
            yield batch(_joined(waiting), key)
            waiting, held_bytes = [], 0
    if waiting:
        yield batch(_joined(waiting), key)


def json_lines(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return the lines of all documents, with their line ends, as one byte string."""
    column = rows.column("line")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return b"".join(_text(chunk) for chunk in chunks)


def lines_of(rows: pa.Table | pa.RecordBatch) -> list[bytes]:
    """Return the documents' JSON texts, each with its line end."""
    found: list[bytes] = rows.column("line").to_pylist()
    return found


def _joined(texts: list[str]) -> bytes:
    return ("\n".join(texts) + "\n").encode()


def _text(array: pa.Array) -> memoryview:
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    return memoryview(array.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
