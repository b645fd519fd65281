"""From schema elements to leaf columns: trees, levels, logical types, orders; and invalid schemas."""

from __future__ import annotations

import pytest

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.footer import parse_footer
from libraries.near_storage.parquet.schema import MOST_SCHEMA_DEPTH, Column, Logical
from libraries.near_storage.tests.parquet.footers import (
    NEW_ORDER,
    REPEATED,
    REQUIRED,
    TOTAL_ORDER,
    TYPE_ORDER,
    file_metadata,
    group,
    leaf,
    root,
)
from libraries.near_storage.tests.parquet.thrift_writing import Wire, binary, boolean, byte, i32, struct

UNIT = {name: struct({number: struct({})}) for number, name in ((1, "ms"), (2, "us"), (3, "ns"), (4, ""))}


def columns(elements: list[Wire], orders: list[Wire] | None = None) -> tuple[Column, ...]:
    metadata = file_metadata(elements, [], 0, orders)
    return parse_footer(metadata, len(metadata) + 100).columns


def schema_hash(elements: list[Wire], more: dict[int, Wire] | None = None) -> str:
    metadata = file_metadata(elements, [], 0, None, more)
    return parse_footer(metadata, len(metadata) + 100).schema_hash


def test_flat_columns():
    assert columns([root(2), leaf("a", "INT32", REQUIRED), leaf("a.b", "FIXED_LEN_BYTE_ARRAY", more={2: i32(7)})]) == (
        Column(("a",), "INT32", 0, None, "undefined", 0, 0),
        Column(("a.b",), "FIXED_LEN_BYTE_ARRAY", 7, None, "undefined", 1, 0),
    )


def test_nested_columns():
    found = columns(
        [
            root(4),
            group("list", 1),
            group("items", 1, REPEATED),
            leaf("item", repetition=REQUIRED),
            group("struct", 2, REQUIRED),
            leaf("x", repetition=REQUIRED),
            leaf("y"),
            group("nothing", 0),
            leaf("old list", repetition=REPEATED),
        ]
    )
    assert [(one.path, one.nulls, one.repeats, one.flat) for one in found] == [
        (("list", "items", "item"), 2, 1, False),
        (("struct", "x"), 0, 0, False),
        (("struct", "y"), 1, 0, False),
        (("old list",), 1, 1, False),
    ]


INTEGER, DECIMAL, TIME, TIMESTAMP = 10, 5, 7, 8
LOGICAL = {
    "string": (1, {}, Logical("string")),
    "decimal": (DECIMAL, {1: i32(2), 2: i32(9)}, Logical("decimal", scale=2, precision=9)),
    "time": (TIME, {1: boolean(False), 2: UNIT["us"]}, Logical("time", unit="us")),
    "timestamp": (TIMESTAMP, {1: boolean(True), 2: UNIT["ns"]}, Logical("timestamp", unit="ns", utc=True)),
    "a unit to come": (TIMESTAMP, {1: boolean(True), 2: UNIT[""]}, Logical("timestamp", unit="", utc=True)),
    "integer": (INTEGER, {1: byte(16), 2: boolean(False)}, Logical("integer", bits=16, signed=False)),
    "null": (11, {}, Logical("null")),
    "float16": (15, {}, Logical("float16")),
    "variant": (16, {1: byte(1)}, Logical("variant")),
    "file": (19, {}, Logical("file")),
    "one to come": (20, {1: i32(5)}, Logical("unknown")),
}


@pytest.mark.parametrize("case", LOGICAL)
def test_logical_types(case):
    number, fields, expected = LOGICAL[case]
    # The contradicting converted type is ignored.
    more = {10: struct({number: struct(fields)}), 6: i32(9)}
    assert columns([root(1), leaf("a", more=more)])[0].logical == expected


CONVERTED = {
    0: Logical("string"),
    5: Logical("decimal", precision=7, scale=3),
    6: Logical("date"),
    9: Logical("timestamp", unit="ms", utc=True),
    13: Logical("integer", bits=32, signed=False),
    16: Logical("integer", bits=16),
    18: Logical("integer", bits=64),
    21: Logical("interval"),
    22: Logical("unknown"),
}


@pytest.mark.parametrize("number", CONVERTED)
def test_converted_types(number):
    more = {6: i32(number), 7: i32(3), 8: i32(7)}
    assert columns([root(1), leaf("a", more=more)])[0].logical == CONVERTED[number]


def test_orders():
    elements = [root(3), leaf("a"), leaf("b", "FLOAT"), leaf("c")]
    assert [one.order for one in columns(elements, [TYPE_ORDER, TOTAL_ORDER, NEW_ORDER])] == [
        "type",
        "ieee 754 total",
        "undefined",
    ]
    half = {2: i32(2), 10: struct({15: struct({})})}
    elements = [root(2), leaf("a", "FIXED_LEN_BYTE_ARRAY", more=half), leaf("b", "FIXED_LEN_BYTE_ARRAY")]
    assert [one.order for one in columns(elements, [TOTAL_ORDER] * 2)] == ["ieee 754 total", "undefined"]


BROKEN = {
    "no root": ([], None, "no root"),
    "too few children": ([root(2), leaf("a")], None, "1 more elements"),
    "too many children": ([root(1), leaf("a"), leaf("b")], None, "belongs to no group"),
    "an inner group too few": ([root(1), group("g", 2), leaf("a")], None, "1 more elements"),
    "negative children": ([root(-1)], None, "-1 children"),
    "2**31 children": ([root(2**31 - 1), leaf("a")], None, "more elements"),
    "a leaf with children": ([root(1), leaf("a", more={5: i32(1)}), leaf("b")], None, "type and 1 children"),
    "a type that does not exist": ([root(1), leaf("a", more={1: i32(8)})], None, "type 8"),
    "a negative type": ([root(1), leaf("a", more={1: i32(-1)})], None, "type -1"),
    "a repetition that does not exist": ([root(1), leaf("a", repetition=3)], None, "repetition 3"),
    "a negative length": ([root(1), leaf("a", "FIXED_LEN_BYTE_ARRAY", more={2: i32(-1)})], None, "-1 bytes"),
    "a name that is not text": ([root(1), leaf(b"\xff")], None, "not UTF-8"),
    "two logical types": ([root(1), leaf("a", more={10: struct({1: struct({}), 4: struct({})})})], None, "2 logical"),
    "two orders": ([root(1), leaf("a")], [struct({1: struct({}), 2: struct({})})], "2 column orders; at most one"),
    "too many orders": ([root(1), leaf("a")], [TYPE_ORDER] * 2, "2 column orders for 1"),
    "a decimal without digits": ([root(1), leaf("a", more={10: struct({5: struct({})})})], None, "DecimalType lacks"),
    "groups in groups": ([root(1), *[group("g", 1)] * MOST_SCHEMA_DEPTH, leaf("a")], None, "levels deep"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_schema(case):
    elements, orders, message = BROKEN[case]
    with pytest.raises(FooterError, match=message):
        columns(elements, orders)


def test_groups_as_deep_as_allowed():
    deep = columns([root(1), *[group("g", 1)] * (MOST_SCHEMA_DEPTH - 1), leaf("a")])
    assert len(deep[0].path) == MOST_SCHEMA_DEPTH


def test_the_hash_tells_schemas_apart_and_nothing_else():
    one = schema_hash([root(1), leaf("a")])
    assert one == schema_hash([struct({4: binary("another name"), 5: i32(1)}), leaf("a")])
    assert one == schema_hash([root(1), leaf("a")], {6: None, 5: None})
    others = [
        [root(1), leaf("b")],
        [root(1), leaf("a", "INT32")],
        [root(1), leaf("a", repetition=REQUIRED)],
        [root(1), leaf("a", more={6: i32(10)})],
        [root(1), leaf("a", more={10: struct({8: struct({1: boolean(True), 2: UNIT["us"]})})})],
        [root(1), leaf("a", more={10: struct({8: struct({1: boolean(False), 2: UNIT["us"]})})})],
        [root(1), group("g", 1), leaf("a")],
        [root(2), leaf("a"), leaf("a")],
    ]
    assert len({one, *(schema_hash(other) for other in others)}) == 1 + len(others)
