"""Nested columns become flat columns, numbered as in the specification, and are restored unchanged."""

import numpy as np
import pyarrow as pa
import pytest

from libraries.f3.columns import shredding
from libraries.f3.columns.shredding import node_of, shred
from libraries.f3.container import metadata
from libraries.f3.container.metadata import LogicalTree
from libraries.f3.errors import F3Error

FLAT_TYPES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"),
    pa.time64("us"), pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ns", "Europe/Berlin"), pa.duration("ms"),
    pa.month_day_nano_interval(), pa.decimal128(20, 3), pa.decimal256(60, 3), pa.binary(), pa.large_binary(),
    pa.string(), pa.large_string(),
]  # fmt: skip

OTHER_TYPES = [
    pa.null(), pa.map_(pa.string(), pa.int32()), pa.list_(pa.int8(), 3), pa.binary(16), pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()), pa.binary_view(), pa.list_view(pa.int8()), pa.large_list_view(pa.int8()),
    pa.uuid(), pa.decimal32(5), pa.decimal64(9), pa.run_end_encoded(pa.int32(), pa.int8()),
    pa.dense_union([pa.field("a", pa.int8())]),
]  # fmt: skip


@pytest.mark.parametrize("arrow_type", FLAT_TYPES, ids=str)
def test_flat_types_take_one_column(arrow_type):
    node = node_of(pa.field("a", arrow_type), 3)
    assert (node.numbers, node.tree) == (range(3, 4), LogicalTree(metadata.FLAT))


@pytest.mark.parametrize("arrow_type", OTHER_TYPES, ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_other_types_are_refused_with_column_and_type(arrow_type, nested):
    field = pa.field("a", pa.list_(pa.struct({"b": arrow_type})) if nested else arrow_type)
    with pytest.raises(F3Error) as told:
        node_of(field, 0)
    where = "a[].b" if nested else "a"
    assert str(told.value).startswith(f"column {where}: the type {arrow_type} cannot be stored in F3")


def test_columns_are_numbered_as_in_the_specification():
    """This is the example of section 3.3 of the specification."""
    fields = [pa.field("a", pa.int32()), pa.field("b", pa.list_(pa.struct({"x": pa.int32(), "y": pa.string()})))]
    a = node_of(fields[0], 0)
    b = node_of(fields[1], a.numbers.stop)
    assert [(node.what, node.column) for root in (a, b) for node in root.walk()] == [
        ("a", 0), ("b", 1), ("b[]", 2), ("b[].x", 3), ("b[].y", 4),
    ]  # fmt: skip
    leaf = LogicalTree(metadata.FLAT)
    assert b.tree == LogicalTree(metadata.LIST, (LogicalTree(metadata.STRUCT, (leaf, leaf)),))


def test_a_pushed_down_list_has_the_columns_of_its_fields_alone():
    field = pa.field("b", pa.list_(pa.struct({"x": pa.int32(), "y": pa.string()})))
    assert shredding.may_push_down(field.type)
    node = shredding.pushed_down(field, 4)
    assert (node.numbers, [child.column for child in node.children]) == (range(4, 6), [4, 5])


@pytest.mark.parametrize(
    "arrow_type", [pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.list_(pa.struct([])),
                   pa.list_(pa.struct({"a": pa.list_(pa.int8())}))], ids=str,
)  # fmt: skip
def test_only_lists_of_flat_structs_are_pushed_down(arrow_type):
    assert not shredding.may_push_down(arrow_type)


def test_columns_that_nest_too_deep_are_refused():
    arrow_type = pa.int8()
    for _ in range(100):
        arrow_type = pa.list_(arrow_type)
    with pytest.raises(F3Error, match="deeper than 64 levels"):
        node_of(pa.field("a", arrow_type), 0)


def pieces(array):
    node = node_of(pa.field("a", array.type), 0)
    return [
        (piece.node.column, piece.values.to_pylist(), None if piece.offsets is None else piece.offsets.to_pylist())
        for piece in shred(node, array)
    ]


def test_a_list_is_presence_and_offsets_and_its_items():
    assert pieces(pa.array([[1, 2], None, [], [3]], pa.list_(pa.int8()))) == [
        (0, [True, False, True, True], [0, 2, 2, 2, 3]),
        (1, [1, 2, 3], None),
    ]


def test_the_offsets_of_a_slice_begin_at_0():
    array = pa.array([[1, 2], [3], [4, 5, 6]], pa.large_list(pa.int8())).slice(1)
    assert pieces(array) == [(0, [True, True], [0, 1, 4]), (1, [3, 4, 5, 6], None)]
    assert pieces(array.slice(2)) == [(0, [], [0]), (1, [], None)]


def test_a_struct_is_presence_and_its_fields_as_they_are_below_nulls():
    fields = [pa.array([1, 2, 3], pa.int8()), pa.array(["x", None, "z"])]
    array = pa.StructArray.from_arrays(fields, ["a", "b"], mask=pa.array([False, False, True]))
    assert pieces(array.slice(1)) == [(0, [True, False], None), (1, [2, 3], None), (2, [None, "z"], None)]


def test_lists_of_several_units_are_put_together():
    present = pa.array([True, False, True, True])
    parts = [np.array([0, 2, 2], np.int32), np.empty(0, np.int32), np.array([5, 5, 6], np.int32)]
    made = shredding.lists(pa.list_(pa.int8()), present, parts, pa.array([1, 2, 3], pa.int8()))
    made.validate(full=True)
    assert made.to_pylist() == [[1, 2], None, [], [3]]


@pytest.mark.parametrize(
    ("present", "parts", "items", "told"),
    [
        ([True], [[0, 2]], [1], "refer to 2 items, but there are 1"),
        ([True, True], [[0, 1]], [1], "presence bits for 2 lists, but offsets for 1"),
        ([True, True], [[0, 2, 1]], [1], "less than the offset before it"),
        ([True, None], [[0, 0, 1]], [1], "must not have nulls"),
    ],
)
def test_lists_whose_counts_differ_are_refused(present, parts, items, told):
    with pytest.raises(F3Error, match=told):
        shredding.lists(
            pa.list_(pa.int8()), pa.array(present, pa.bool_()), [np.array(part, np.int32) for part in parts],
            pa.array(items, pa.int8()),
        )  # fmt: skip


def test_too_many_items_for_32_bit_offsets_are_not_a_fault(monkeypatch):
    monkeypatch.setattr(shredding, "_MOST_ITEMS", 3)
    present, part, items = pa.array([True, True]), np.array([0, 2]), pa.array([1, 2, 3, 4])
    with pytest.raises(shredding.TooLongError):
        shredding.lists(pa.list_(pa.int64()), present, [part, part], items)
    assert shredding.lists(pa.large_list(pa.int64()), present, [part, part], items).to_pylist() == [[1, 2], [3, 4]]


def test_structs_whose_fields_have_other_lengths_are_refused():
    with pytest.raises(F3Error, match=r"each field of 2 structs must have 2 values \(got 1\)"):
        shredding.structs(pa.struct({"a": pa.int8()}), pa.array([True, True]), [pa.array([1], pa.int8())])


def test_presence_that_does_not_begin_at_a_byte_is_moved():
    present = pa.array([True, False, True, False]).slice(1)
    made = shredding.structs(pa.struct({"a": pa.int8()}), present, [pa.array([1, 2, 3], pa.int8())])
    assert made.to_pylist() == [None, {"a": 2}, None]
