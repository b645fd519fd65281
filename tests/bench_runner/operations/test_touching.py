"""For all types, every page that a table's rows occupy is read, and no other page. A layout that does not fit is
rejected."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from bench_runner.machine.linux import PAGE_BYTES
from bench_runner.operations.pages import touching
from bench_runner.operations.pages.touching import layout_of, touch_table
from data_generator.generated.kinds import KINDS

UNKNOWN = (
    pa.dense_union([pa.field("a", pa.int8())]),
    pa.run_end_encoded(pa.int16(), pa.int8()),
    pa.list_view(pa.int8()),
)


@pytest.fixture(autouse=True)
def _built() -> None:
    assert touching.library() is not None, "python -m bench_runner.build"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_is_touched_whole_and_in_pieces(kind: str) -> None:
    for nulls in KINDS[kind].nulls:
        table = KINDS[kind].table(nulls)
        for piece in (table, table.slice(1, table.num_rows // 2), table.slice(table.num_rows), table.slice(3, 1)):
            assert touch_table(piece) is not None


def _lists(items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(items) + 1, 4, np.int32)), items)


def _maps(items: pa.Array) -> pa.Array:
    keys = pa.array(np.zeros(len(items), np.int8))
    return pa.MapArray.from_arrays(pa.array(np.arange(0, len(items) + 1, 4, np.int32)), keys, items)


NESTINGS: dict[str, tuple[int, Callable[[pa.Array], pa.Array]]] = {
    "numbers": (1, lambda items: items),
    "vectors": (4, lambda items: pa.FixedSizeListArray.from_arrays(items, 4)),
    "structs": (1, lambda items: pa.StructArray.from_arrays([items], ["i"])),
    "lists": (4, _lists),
    "maps": (4, _maps),
    "vectors of structs": (
        4,
        lambda items: pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([items], ["i"]), 4),
    ),
    "lists of vectors": (8, lambda items: _lists(pa.FixedSizeListArray.from_arrays(items, 2))),
}
"""Number of values per row, and a function that makes a column of the values."""


@pytest.mark.parametrize("nesting", NESTINGS)
def test_all_pages_of_the_rows_are_read_and_no_others(nesting: str) -> None:
    """The values are in an anonymous mapping, whose pages the system allocates when they are first read.

    A slice of a nested column refers to all items of the whole column. Touching all of them took longer than reading
    many a batch."""
    pages = 64
    mapping = mmap.mmap(-1, pages * PAGE_BYTES)
    values = np.frombuffer(mapping, np.int64)
    of_a_row, made = NESTINGS[nesting]
    items = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
    table = pa.table({"i": made(items)})
    rows = PAGE_BYTES // 8 // of_a_row
    touch_table(table.slice(4 * rows).slice(4 * rows, 16 * rows))
    assert resident(mapping, pages) == [8 <= page < 24 for page in range(pages)]


def resident(mapping: mmap.mmap, pages: int) -> list[bool]:
    """Return which pages were touched, from /proc/self/pagemap."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    with open("/proc/self/pagemap", "rb") as told:
        told.seek(address // PAGE_BYTES * 8)
        return [bool(entry >> 63) for entry in np.frombuffer(told.read(8 * pages), np.uint64).tolist()]


def test_the_sum_is_of_the_first_byte_and_of_each_pages() -> None:
    values = np.zeros(10 * PAGE_BYTES, np.uint8)
    first = np.arange(len(values)) == 5
    read = first | ((values.ctypes.data + np.arange(len(values))) % PAGE_BYTES == 0)
    values[read] = 1
    values[5] = 7
    assert touch_table(pa.table({"u": pa.array(values)}).slice(5)) == int(values[5:].sum())


def test_chunks_and_dictionaries_are_touched() -> None:
    words = pa.array(["a", "b"]).dictionary_encode()
    table = pa.table({"w": pa.chunked_array([words, words]), "i": pa.chunked_array([[1], [2, 3, 4]])})
    # Each of the three batches adds 'a' (the first byte of its dictionary) and offset 0. The first bytes of the codes
    # are 0, 1 and 0; those of the integers are 1, 2 and 3.
    assert touch_table(table) == 3 * ord("a") + (0 + 1 + 0) + (1 + 2 + 3)


def test_tables_without_columns_rows_or_chunks() -> None:
    assert touch_table(pa.table({})) == 0
    assert touch_table(pa.table({"a": pa.chunked_array([], pa.string())})) == 0


@pytest.mark.parametrize("kind", UNKNOWN, ids=str)
def test_types_that_are_not_known_are_left_to_python(kind: pa.DataType) -> None:
    assert layout_of(pa.schema({"a": pa.int8(), "u": kind})) is None
    assert touch_table(pa.Table.from_batches([], pa.schema({"u": kind}))) is None


@pytest.mark.parametrize(
    "other", [pa.schema({"a": pa.string()}), pa.schema({}), pa.schema({"a": pa.int8(), "b": pa.int8()})]
)
def test_a_layout_of_another_table_is_refused(other: pa.Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong layout would read memory outside of the table, so it must be rejected instead of crashing."""
    monkeypatch.setattr(touching, "_layout", lambda schema: layout_of(other))
    with pytest.raises(AssertionError, match="do not match its schema"):
        touch_table(pa.table({"a": pa.array([1, 2], pa.int8())}))


def test_tables_of_other_types_in_turn_have_their_own_layouts() -> None:
    texts, numbers = pa.table({"a": ["x", "y"]}), pa.table({"a": [1, 2]})
    for _ in range(3):
        assert touch_table(texts) == ord("x")
        assert touch_table(numbers) == 1
