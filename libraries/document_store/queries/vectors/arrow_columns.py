"""Convert vectors to Arrow columns, and Python values to vectors.

A column has the type of its values. In a column of integers and doubles, the integers become doubles if this changes
none of them. A column of other mixed types becomes JSON text, or has only the values of the type that the caller names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from libraries.document_queries.errors import QueryError
from libraries.document_store.queries.threads import in_threads
from libraries.document_store.queries.vectors import arrow
from libraries.document_store.queries.vectors import vector as vectors
from libraries.document_store.queries.vectors.coded import plain
from libraries.document_store.queries.vectors.slots import Values
from libraries.document_store.queries.vectors.vector import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    MISSING,
    TEXT,
    WITHOUT_VALUES,
    Vector,
)
from libraries.document_store.table import EXACT_INTEGERS, array_of, json_text
from libraries.document_store.values import ValueKind, kind_of

Chunks = Sequence[Vector]
"""The values of a column, in pieces."""

ARRAY, OBJECT = int(ValueKind.ARRAY), int(ValueKind.OBJECT)
NESTED = (ARRAY, OBJECT)
"""Kinds whose values in a vector are Python objects, in a numpy array."""

_TYPES = {**{BOOLEAN: pa.bool_(), INTEGER: pa.int64(), DOUBLE: pa.float64(), TEXT: pa.string(), BINARY: pa.binary()}}
_MOST_SHORT_BYTES = (1 << 31) - 1
"""Maximum bytes of the texts of a `string` array."""

NAMED_TYPES = {
    pa.bool_(): (BOOLEAN,),
    pa.int64(): (INTEGER,),
    pa.float64(): (INTEGER, DOUBLE),
    pa.string(): (TEXT,),
    pa.binary(): (BINARY,),
}
"""Arrow type that a caller may name for a column -> the kinds of values that the column then keeps."""


def vector_of(values: Sequence[Any]) -> Vector:
    """Return a vector of Python values. The values may include MISSING (of the query language), arrays and objects."""
    kinds = np.fromiter((_kind(value) for value in values), np.uint8, len(values))
    found: dict[int, Values] = {}
    for kind in np.unique(kinds).tolist():
        if kind in WITHOUT_VALUES:
            continue
        some = [values[place] for place in np.flatnonzero(kinds == kind).tolist()]
        if kind in (TEXT, BINARY):
            found[kind] = arrow.constants(some, pa.large_string() if kind == TEXT else pa.large_binary())
        elif kind in NESTED:
            found[kind] = np.empty(len(some), object)
            found[kind][:] = some
        else:
            found[kind] = np.array(some)
    return Vector(len(values), kinds, found)


def _kind(value: Any) -> int:
    try:
        return int(kind_of(value))
    except TypeError:
        return MISSING


def kinds_in(chunks: Chunks) -> set[int]:
    """Return the kinds of the values, without null and missing."""
    return {kind for vector in chunks for kind, values in vector.values.items() if len(values)}


def column_of(chunks: Chunks, mixed: set[str], path: str) -> pa.ChunkedArray:
    """Return a column of all values. Values of mixed types become JSON text; add the paths of these values to
    `mixed`."""
    kinds = kinds_in(chunks)
    if not kinds:
        return _chunked(chunks, lambda vector: pa.nulls(vector.count), pa.null())
    if kinds == {INTEGER, DOUBLE} and has_exact_integers(chunks):
        return numbers_of(chunks)
    if len(kinds) > 1:
        mixed.add(path)
        return json_of(chunks)
    (kind,) = kinds
    if kind in NESTED:
        values = [value for vector in chunks for value in vector.tolist(None)]
        return pa.chunked_array([array_of(values, mixed, path)])
    return part_of(chunks, kind)


def typed_column_of(chunks: Chunks, type_: pa.DataType, path: str) -> pa.ChunkedArray:
    """Return a column of the Arrow type that the caller wants for the field or result column `path`. Values of other
    types become null. Raises QueryError if the type is not in NAMED_TYPES, and for float64 if an integer would change.
    `path` is only used in these errors."""
    if type_ not in NAMED_TYPES:
        allowed = ", ".join(str(each) for each in NAMED_TYPES)
        raise QueryError(f"types, {path}: {type_} is not supported; allowed are {allowed}")
    kinds = NAMED_TYPES[type_]
    if len(kinds) == 1:
        return part_of(chunks, kinds[0]).cast(type_)
    if not has_exact_integers(chunks):
        raise QueryError(f"`types`, {path}: float64 cannot hold integers beyond 2**53 exactly; use pa.int64()")
    return numbers_of(chunks)


def has_exact_integers(chunks: Chunks) -> bool:
    """Return whether doubles represent all integers exactly."""
    found = [vector.values[INTEGER] for vector in chunks if len(vector.values.get(INTEGER, ()))]
    return all(int(some.min()) >= -EXACT_INTEGERS and int(some.max()) <= EXACT_INTEGERS for some in found)


def numbers_of(chunks: Chunks) -> pa.ChunkedArray:
    """Return all integers and doubles as doubles; other values are null."""
    return _chunked(chunks, _numbers_of, pa.float64())


def part_of(chunks: Chunks, kind: int) -> pa.ChunkedArray:
    """Return the values of one kind, other than arrays and objects. Values of other kinds become null."""
    return _chunked(chunks, lambda vector: _part_of(vector, kind), _TYPES[kind])


def json_of(chunks: Chunks) -> pa.ChunkedArray:
    """Return the JSON text of each value; null and missing are null."""
    return _chunked(chunks, _json_of, pa.string())


def _chunked(chunks: Chunks, convert: Callable[[Vector], pa.Array], type_: pa.DataType) -> pa.ChunkedArray:
    arrays = [array for _, array in in_threads(convert, chunks)] if len(chunks) > 1 else [*map(convert, chunks)]
    return pa.chunked_array(arrays) if arrays else pa.chunked_array([], type_)


def _numbers_of(vector: Vector) -> pa.Array:
    kinds = vectors.spelled_out(vector)
    whole = np.zeros(vector.count)
    for kind in (INTEGER, DOUBLE):
        if kind in vector.values:
            whole[kinds == kind] = vector.values[kind]
    return _fixed(whole, (kinds == INTEGER) | (kinds == DOUBLE), pa.float64())


def _part_of(vector: Vector, kind: int) -> pa.Array:
    values = vector.values.get(kind)
    if values is None or len(values) == 0:
        return pa.nulls(vector.count, _TYPES[kind])
    present = None if len(values) == vector.count else vectors.spelled_out(vector) == kind
    if kind in (TEXT, BINARY):
        return _texts(plain(values), present)
    if present is not None:
        whole = np.zeros(vector.count, values.dtype)
        whole[present] = values
        values = whole
    return _fixed(values, present, _TYPES[kind])


def _fixed(values: np.ndarray, present: np.ndarray | None, type_: pa.DataType) -> pa.Array:
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(type_, len(values), [_validity(present), pa.py_buffer(data)])


def _validity(present: np.ndarray | None) -> pa.Buffer | None:
    return None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))


def _texts(values: pa.Array, present: np.ndarray | None) -> pa.Array:
    if values.offset:
        values = pa.concat_arrays([values])
    offsets = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1)
    if present is not None:
        # An absent text is empty: it ends where the previous text ends.
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(present)))
        offsets = offsets[ends]
    is_text = values.type == pa.large_string()
    type_ = pa.large_string() if is_text else pa.large_binary()
    if int(offsets[-1]) <= _MOST_SHORT_BYTES:
        offsets = offsets.astype(np.int32)
        type_ = pa.string() if is_text else pa.binary()
    buffers = [_validity(present), pa.py_buffer(np.ascontiguousarray(offsets)), values.buffers()[2]]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers)


def _json_of(vector: Vector) -> pa.Array:
    kinds = vectors.spelled_out(vector)
    whole = np.full(vector.count, None, object)
    for kind, values in vector.values.items():
        part = np.empty(len(values), object)
        part[:] = [json_text(value) for value in Vector(len(values), kind, {kind: values}).tolist(None)]
        whole[kinds == kind] = part
    return pa.array(whole.tolist(), pa.string())
