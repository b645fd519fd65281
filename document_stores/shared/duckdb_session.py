"""Code that the stores using DuckDB share: connecting, converting documents to Arrow arrays of JSON texts, and decoding
documents from such arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.document_store import Batch, Document, FieldPath, Key
from adapters.errors import AdapterError, RefusedData
from document_stores.shared import document_encoding
from document_stores.sql.values import Quoted, Value

if TYPE_CHECKING:
    import pyarrow as pa

SCAN_DOCUMENTS = 2_048
"""Number of documents that a scan yields at a time. It equals the size of a vector in DuckDB."""


def connect(duckdb: Any, location: Path | None, threads: int | None, read_only: bool = False) -> Any:
    """Return a connection to a file, or to a database in memory if `location` is None. DuckDB is configured not to
    download extensions and not to write temporary files.

    Raises AdapterError for a file that DuckDB cannot open.
    """
    config: dict[str, Any] = {"autoinstall_known_extensions": "false", "temp_directory": ""}
    if threads is not None:
        config["threads"] = threads
    try:
        return duckdb.connect(str(location) if location else ":memory:", read_only=read_only, config=config)
    except duckdb.Error as error:
        raise AdapterError(f"{location}: DuckDB cannot open it ({error})") from None


def lines_of(batches: Iterable[Batch]) -> Iterator[pa.Array]:
    """Yield Arrow arrays with the JSON text of each document. Raises RefusedData for NaN and Infinity, which DuckDB
    would accept."""
    first = 0
    for text in document_encoding.lines(batches):
        array = document_encoding.texts_of(document_encoding.strict(text, first))
        if len(array):
            yield array
        first += len(array)


class BatchStream:
    """A stream of Arrow batches that one SQL statement reads. If the source of the batches raises an error, DuckDB
    reports another error; `broken` keeps the original error, so that it can be raised instead."""

    def __init__(self, arrays: Iterator[pa.Array]) -> None:
        """Read the first array now, because the documents in this array determine the type of keys."""
        self.first = next(arrays, None)
        self._arrays = itertools.chain([self.first] if self.first is not None else [], arrays)
        self.broken: RefusedData | None = None

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the batches, which have one column, `line`."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(pa.schema([("line", pa.large_string())]), self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            for array in self._arrays:
                yield pa.record_batch([array], names=["line"])
        except RefusedData as error:
            self.broken = error
            raise


@contextmanager
def refusals(duckdb: Any, source: BatchStream | None = None) -> Iterator[None]:
    """Convert DuckDB's errors about documents to RefusedData. If `source` has raised an error, raise that error
    instead."""
    refused = (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.ConstraintException)
    try:
        yield
    except (*refused, duckdb.BinderException, duckdb.NotImplementedException, duckdb.OutOfRangeException) as error:
        if source is not None and source.broken is not None:
            raise source.broken from None
        raise RefusedData(str(error).splitlines()[0]) from None


def key_type(line: Any, key: str) -> str:
    """Return the SQL type for the key of the document `line`, 'BIGINT' or 'VARCHAR'. Return 'BIGINT' if `line` is None.
    Raises RefusedData if the document has no valid key."""
    if line is None:
        return "BIGINT"
    document = document_encoding.parsed(str(line).encode())[0]
    return "BIGINT" if isinstance(document_encoding.key_of(document, key, 0), int) else "VARCHAR"


def strict_key(value: Value, type_: str) -> str:
    """Return SQL for the key of a document. Executing this SQL fails if the key does not have the type `type_`."""
    found = value.integer() if type_ == "BIGINT" else value.text()
    wanted = "an int of 64 bits" if type_ == "BIGINT" else "a text"
    return f"coalesce({found}, CAST(error({Quoted.text(f'a document has a key that is not {wanted}')}) AS {type_}))"


def json_lines(relation: Any) -> Iterator[bytes]:
    """Yield one bytes object for each batch of a query's result: the concatenated texts of the only column."""
    for batch in relation.to_arrow_reader(SCAN_DOCUMENTS):
        if batch.num_rows:
            yield text_bytes(batch.column(0))


def text_bytes(array: pa.Array) -> bytes:
    """Return the concatenated bytes of all texts of an array, which must not have nulls."""
    import numpy as np
    import pyarrow as pa

    whole = array.cast(pa.large_string())
    _, offsets, data = whole.buffers()
    if data is None:
        return b""
    ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    return bytes(data[int(ends[0]) : int(ends[-1])])


def assembled(batch: Any, paths: Sequence[FieldPath]) -> list[Document]:
    """Return documents assembled from their fields. Each column has the JSON texts of the field at a path in `paths`,
    or NULL for documents without the field."""
    import pyarrow.compute as pc

    documents: list[Document] = [{} for _ in range(batch.num_rows)]
    for path, column in zip(paths, batch.columns, strict=True):
        there = column.is_valid()
        places = pc.indices_nonzero(there).to_pylist()
        texts = column.filter(there).to_pylist()
        values = document_encoding.values_of("\n".join(texts).encode()) if texts else []
        for place, value in zip(places, values, strict=True):
            inner = documents[place]
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = value
    return documents


def fitting(keys: Sequence[Key], type_: str) -> list[Key]:
    """Return those keys that a column of this SQL type can contain, without duplicates."""
    wanted = int if type_ == "BIGINT" else str
    return document_encoding.possible(key for key in keys if type(key) is wanted)


def names_with_nul(paths: Sequence[FieldPath]) -> bool:
    """Return whether a name contains a NUL, which SQL cannot express."""
    return any("\0" in name for path in paths for name in path)
