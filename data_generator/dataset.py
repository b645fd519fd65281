"""A data set: a name, a schema, and batches that have the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

BATCH_ROWS = 1_048_576
"""Maximum number of rows in a batch. Data sets are made and stored batch by batch."""


@dataclass(frozen=True)
class Dataset:
    """A table that is made on demand.

    `batches` is a function that yields the table batch by batch. All batches have the schema `schema`. Every call
    starts from the first batch and yields the same batches.
    """

    name: str
    """The canonical name without default parameters, such as 'synthetic[int=5,float=1,bool=1,str=1]'."""
    rows: int
    schema: pa.Schema
    version: int
    """Version of the generator. A changed generator gets a new version, so that the cache does not use the old file."""
    batches: Callable[[], Iterator[pa.RecordBatch]]
    source: Mapping[str, str] = field(default_factory=dict)
    """For data from the user's files: facts that identify the files, such as path, size_bytes and mtime_ns."""
    largest_side: int | None = None
    """For images: the largest width or height of any image in pixels."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user. Each has two lines: what was found, and what to do."""
    understood: Mapping[str, str] = field(default_factory=dict)
    """For data from the user's files: how the files were read, such as delimiter and encoding."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """All parameters of the catalogue with their values, including defaults."""


def columns_of(dataset: Dataset) -> dict[str, str]:
    """Return column name -> name of its type, for the user's data; {} for other data."""
    return {column.name: type_name(column.type) for column in dataset.schema} if dataset.source else {}


def type_name(kind: pa.DataType) -> str:
    """Return the name of a type in reports and options, e.g. 'float64' for Arrow's double, 'text' for Arrow's
    string."""
    if pa.types.is_dictionary(kind):
        return f"{'ordered ' if kind.ordered else ''}category of {type_name(kind.value_type)}"
    names = {pa.string(): "text", pa.float64(): "float64", pa.float32(): "float32", pa.float16(): "float16"}
    return {**names, pa.bool_(): "boolean", pa.date32(): "date"}.get(kind, str(kind))


def batch_sizes(rows: int, batch_rows: int = BATCH_ROWS) -> Iterator[int]:
    """Yield the number of rows of each batch of a table with `rows` rows. An empty table has no batches."""
    for start in range(0, rows, batch_rows):
        yield min(batch_rows, rows - start)
