"""A data set: a name, a schema, and batches that have the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

BATCH_ROWS = 1_048_576
"""Most rows of a batch, the unit in which data sets are made and stored."""


@dataclass(frozen=True)
class Dataset:
    """A table that is made on demand.

    `batches` yields it from the start, batch by batch, each with `schema`; every call yields the same batches.
    """

    name: str
    """The canonical spelling, defaults left out: 'synthetic[int=5,float=1,bool=1,str=1]'."""
    rows: int
    schema: pa.Schema
    version: int
    """Version of its generator. Another version is another table, and another file in the cache."""
    batches: Callable[[], Iterator[pa.RecordBatch]]
    source: Mapping[str, str] = field(default_factory=dict)
    """For data from the user's files: what identifies them, such as path, size_bytes and mtime_ns."""
    largest_side: int | None = None
    """For images: pixels of the longest side of any of them."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user, two lines each: what was found, and what to do."""
    understood: Mapping[str, str] = field(default_factory=dict)
    """For data read from the user's files: how they were read, such as delimiter and encoding."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """All parameters of the catalogue with their values, including defaults."""


def columns_of(dataset: Dataset) -> dict[str, str]:
    """Return name and type of each column of the user's data; empty for other data."""
    return {column.name: type_name(column.type) for column in dataset.schema} if dataset.source else {}


def type_name(kind: pa.DataType) -> str:
    """Return a type as shown to users and as options spell it: 'float64' for Arrow's double, 'text' for its string."""
    if pa.types.is_dictionary(kind):
        return f"{'ordered ' if kind.ordered else ''}category of {type_name(kind.value_type)}"
    names = {pa.string(): "text", pa.float64(): "float64", pa.float32(): "float32", pa.float16(): "float16"}
    return {**names, pa.bool_(): "boolean", pa.date32(): "date"}.get(kind, str(kind))


def batch_sizes(rows: int, batch_rows: int = BATCH_ROWS) -> Iterator[int]:
    """Yield the row counts of the batches of a table with `rows` rows; none for an empty table."""
    for start in range(0, rows, batch_rows):
        yield min(batch_rows, rows - start)
