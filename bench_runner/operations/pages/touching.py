"""Reading one byte of each page that the rows of an Arrow table occupy, by a compiled function (method rule 7).

For a table of 30 columns, a loop in Python would take longer than the shortest operations that are measured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from threading import local

import numpy as np
import pyarrow as pa
import pyarrow.types as of

from bench_runner.build import library_of

_ARRAY_BYTES = 80
"""Size of struct ArrowArray on 64-bit machines."""
_EMPTY, _FIXED, _TEXT, _LARGE_TEXT, _LIST, _LARGE_LIST, _NESTED, _VIEWS = range(8)
"""Kinds of memory layout, with the same numbers as in pages.c."""


class _Known(local):
    """The schema of the last table that was touched in this thread, and its layout. Successive tables usually have the
    same schema."""

    schema: pa.Schema | None = None
    layout: np.ndarray | None = None


_known = _Known()


@cache
def library() -> ctypes.CDLL | None:
    """Return the compiled library, or None if it was not built for this machine."""
    try:
        loaded = ctypes.CDLL(str(library_of("pages")))
        loaded.fb_touch.restype = ctypes.c_int
    except (OSError, AttributeError):
        return None
    return loaded


def touch_table(table: pa.Table) -> int | None:
    """Read one byte in each page that the table's rows occupy and return the sum of the bytes read. Return None if the
    compiled library is missing, or if `layout_of` does not support a type of the table."""
    loaded = library()
    layout = _layout(table.schema)
    if loaded is None or layout is None:
        return None
    array, found, total = ctypes.create_string_buffer(_ARRAY_BYTES), ctypes.c_int64(), 0
    for batch in table.to_batches():
        batch._export_to_c(ctypes.addressof(array))
        fault = loaded.fb_touch(
            array, ctypes.c_void_p(layout.ctypes.data), ctypes.c_uint64(layout.size), ctypes.byref(found)
        )
        if fault:
            raise AssertionError(f"the buffers of a batch do not match its schema: {batch.schema}")
        total += found.value
    return total


def _layout(schema: pa.Schema) -> np.ndarray | None:
    if _known.schema is None or not schema.equals(_known.schema):
        _known.schema, _known.layout = schema, layout_of(schema)
    return _known.layout


def layout_of(schema: pa.Schema) -> np.ndarray | None:
    """Return the layout of a record batch for pages.c, as an int64 array, or None if a type is not supported.

    The layout has five numbers for each array, including nested arrays: its kind of memory, the bits of a value (for a
    nested array, the number of items in each child), the number of buffers, the number of children, and whether the
    array has a dictionary.
    """
    try:
        children = [number for field in schema for number in _numbers(field.type)]
    except NotImplementedError:
        return None
    return np.array([_NESTED, 1, 1, len(schema), 0, *children], np.int64)


def _numbers(kind: pa.DataType) -> Iterator[int]:
    if isinstance(kind, pa.BaseExtensionType):
        yield from _numbers(kind.storage_type)
    elif of.is_dictionary(kind):
        yield from (_FIXED, kind.index_type.bit_width, 2, 0, 1)
        yield from _numbers(kind.value_type)
    elif of.is_null(kind):
        yield from (_EMPTY, 0, 0, 0, 0)
    elif of.is_string(kind) or of.is_binary(kind):
        yield from (_TEXT, 0, 3, 0, 0)
    elif of.is_large_string(kind) or of.is_large_binary(kind):
        yield from (_LARGE_TEXT, 0, 3, 0, 0)
    elif of.is_string_view(kind) or of.is_binary_view(kind):
        yield from (_VIEWS, 0, 3, 0, 0)
    elif of.is_list(kind) or of.is_map(kind) or of.is_large_list(kind):
        yield from (_LARGE_LIST if of.is_large_list(kind) else _LIST, 0, 2, 1, 0)
        yield from _numbers(_entries(kind) if of.is_map(kind) else kind.value_type)
    elif of.is_fixed_size_list(kind):
        yield from (_NESTED, kind.list_size, 1, 1, 0)
        yield from _numbers(kind.value_type)
    elif of.is_struct(kind):
        yield from (_NESTED, 1, 1, kind.num_fields, 0)
        for field in kind:
            yield from _numbers(field.type)
    elif of.is_primitive(kind) or of.is_decimal(kind) or of.is_fixed_size_binary(kind) or of.is_boolean(kind):
        yield from (_FIXED, kind.bit_width, 2, 0, 0)
    else:
        raise NotImplementedError(str(kind))


def _entries(kind: pa.MapType) -> pa.DataType:
    return pa.struct([kind.key_field, kind.item_field])
