"""Load the C kernels and expose their functions. Without the kernels the store runs in Python and numpy.

The C sources and the library built from them (`python -m libraries.build`) are in this folder. The C code checks its
input, which may be hostile. It releases Python's global lock while it runs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from libraries.document_store.schema import Schema
from libraries.document_store.values import ValueKind

if TYPE_CHECKING:
    from libraries.document_store.shredding.columns import Column

FOLDER = Path(__file__).parent
LIBRARY_NAME = {"darwin": "libdocument_store.dylib", "win32": "document_store.dll"}.get(
    sys.platform, "libdocument_store.so"
)
VERSION = 9
"""Version of the functions and of their parameters. A library of another version is not used."""


def _load() -> ctypes.CDLL | None:
    try:
        loaded = ctypes.CDLL(str(FOLDER / LIBRARY_NAME))
        return loaded if loaded.ds_version() == VERSION else None
    except (OSError, AttributeError):
        # The second error is raised for a library of another program.
        return None


library = _load()
"""The loaded library; None if it was not built."""
NATIVE = library is not None


NO_MEMORY, NO_ROOM = 2, 3
"""Return codes of C functions: no memory left, and the output buffer is too small. The other codes are 0 (success) and
1 (faulty bytes)."""


def loaded() -> ctypes.CDLL:
    """Return the library. Raises RuntimeError if it was not built; callers check `NATIVE` first."""
    if library is None:
        raise RuntimeError(f"{LIBRARY_NAME} is not built; run 'pip install ziglang', then 'python -m libraries.build'")
    return library


def address(array: np.ndarray) -> ctypes.c_void_p:
    """Return the address of an array, which must outlive the call that uses it."""
    return ctypes.c_void_p(array.__array_interface__["data"][0])


def tree_of(schema: Schema) -> tuple[Any, ...]:
    """Return a schema as C parameters: number of nodes, the parent and the kind of each node, all names, and the start
    of each name."""
    count = len(schema.nodes)
    names = [(node.name or "").encode() for node in schema.nodes]
    return (
        ctypes.c_uint64(count),
        (ctypes.c_int32 * count)(*[node.parent for node in schema.nodes]),
        bytes(node.kind for node in schema.nodes),
        b"".join(names),
        (ctypes.c_uint64 * (count + 1))(*accumulate(map(len, names), initial=0)),
    )


def pointers(rows: Sequence[bytes]) -> tuple[ctypes.Array, ctypes.Array]:
    """Return the addresses and lengths of rows, which must outlive the call that uses them."""
    count = len(rows)
    return (ctypes.c_char_p * count)(*rows), (ctypes.c_uint64 * count)(*map(len, rows))


def first_faulty_row(rows: Sequence[bytes]) -> int | None:
    """Return the index of the first row that is not a valid document; None if all are valid."""
    addresses, lengths = pointers(rows)
    found = ctypes.c_uint64(0)
    fault = loaded().ds_check_rows(ctypes.c_uint64(len(rows)), addresses, lengths, ctypes.byref(found))
    return found.value if fault else None


def keys_of(rows: Sequence[bytes], key: bytes) -> list[int] | list[str] | None:
    """Return the keys of rows, all int or all str. Return None for other or mixed types."""
    addresses, lengths = pointers(rows)
    keys, sizes, kind = np.empty(len(rows), np.int64), np.empty(len(rows), np.uint32), ctypes.c_int32()
    fault = loaded().ds_keys(
        ctypes.c_uint64(len(rows)), addresses, lengths, key, ctypes.c_uint64(len(key)), ctypes.byref(kind),
        address(keys), address(sizes),
    )  # fmt: skip
    if fault:
        return None
    if kind.value != ValueKind.TEXT:
        found: list[int] = keys.tolist()
        return found
    places = zip(rows, keys.tolist(), sizes.tolist(), strict=True)
    return [row[place : place + size].decode() for row, place, size in places]


def rows_of_json(lines: bytes) -> tuple[list[bytes], tuple[int, int] | None]:
    """Return the rows of JSON Lines before the first invalid line, and the positions of the first and last byte of that
    line."""
    most_rows = lines.count(b"\n") + 1
    ends, count = np.empty(most_rows, np.uint64), ctypes.c_uint64()
    faulty, made = (ctypes.c_uint64 * 2)(), ctypes.c_void_p()
    fault = loaded().ds_rows_of_json(
        lines, ctypes.c_uint64(len(lines)), ctypes.c_uint64(most_rows), address(ends), ctypes.byref(count),
        ctypes.byref(made), faulty,
    )  # fmt: skip
    try:
        if fault == NO_MEMORY:
            raise MemoryError("no memory for the rows of this JSON")
        places = [0, *ends[: count.value].tolist()]
        whole = ctypes.string_at(made, places[-1]) if places[-1] else b""
    finally:
        loaded().ds_free(made)
    return [whole[start:end] for start, end in pairwise(places)], (faulty[0], faulty[1]) if fault else None


class Given:
    """Columns as parameters of a C function. This object keeps the memory of the columns alive.

    The parameters of each column are: levels, number of levels, values, number of values, bytes of the values, and
    offsets. A column that is None has no levels.
    """

    def __init__(self, columns: Sequence[Column | None]) -> None:
        """`columns` are in the order in which C numbers them."""
        void, number = ctypes.c_void_p * len(columns), ctypes.c_uint64 * len(columns)
        self._held: list[np.ndarray] = []
        levels, values, offsets = void(), void(), void()
        level_counts, value_counts, value_bytes = number(), number(), number()
        for index, column in enumerate(columns):
            if column is None:
                continue
            levels[index], level_counts[index] = self._place(column.levels), len(column.levels)
            value_counts[index] = len(column.values)
            if isinstance(column.values, np.ndarray):
                values[index], value_bytes[index] = self._place(column.values), column.values.nbytes
            else:
                values[index], value_bytes[index] = self._place(column.values.data), len(column.values.data)
                offsets[index] = self._place(column.values.offsets)
        self.parameters = (levels, level_counts, values, value_counts, value_bytes, offsets)

    def _place(self, array: np.ndarray) -> int:
        self._held.append(np.ascontiguousarray(array))
        # The address of an empty array may be 0, which would mean that the column is not wanted.
        return int(self._held[-1].__array_interface__["data"][0]) or 1


def assembled_rows(schema: Schema, columns: Sequence[Column | None], count: int) -> list[bytes] | None:
    """Return rows assembled from the columns of a schema's leaves. Return None if the columns are inconsistent.

    Values of the leaf REST and of columns that are None are missing in the rows.
    """
    given = Given(columns)
    return assembled(loaded().ds_assemble, count, *tree_of(schema), *given.parameters, ctypes.c_uint64(count))


def assembled(function: Any, count: int, *given: Any) -> list[bytes] | None:
    """Call a C function that assembles `count` rows, and return the rows. Return None if the columns are inconsistent.

    The last two parameters of the C function are outputs: the ends of the rows, and the bytes of the rows.
    """
    ends, made = np.empty(count, np.uint64), ctypes.c_void_p()
    try:
        fault = function(*given, address(ends), ctypes.byref(made))
        if fault == NO_MEMORY:
            raise MemoryError("no memory for the rows of these records")
        places = [0, *ends.tolist()]
        whole = ctypes.string_at(made, places[-1]) if not fault and places[-1] else b""
    finally:
        loaded().ds_free(made)
    return None if fault else [whole[start:end] for start, end in pairwise(places)]
