"""The reader of Thrift's compact protocol: what it accepts and skips; everything else is a FooterError."""

from __future__ import annotations

import pytest

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.thrift import BINARY, BOOLEAN, BYTE, I16, I32, I64, ListOf, Struct, read_struct
from libraries.near_storage.tests.parquet.thrift_writing import (
    Wire,
    binary,
    boolean,
    byte,
    double,
    i16,
    i32,
    i64,
    list_of,
    struct,
    varint,
)

POINT = Struct("Point", {1: I32, 2: I64}, required=frozenset({1}))
SHAPE = Struct(
    "Shape",
    {
        1: BOOLEAN,
        2: BYTE,
        3: I16,
        4: I32,
        5: I64,
        6: BINARY,
        7: ListOf(BINARY, 20),
        8: ListOf(POINT, 20),
        9: POINT,
        300: I32,
    },
)


def read(fields: dict[int, Wire], struct_: Struct = SHAPE) -> dict:
    return read_struct(struct(fields).data, struct_)


def test_every_type_that_can_be_wanted():
    fields = {1: boolean(False), 2: byte(-3), 3: i16(-300), 4: i32(-(2**31)), 5: i64(2**63 - 1), 6: binary(b"\0\xff")}
    nested = {7: list_of([binary("a"), binary("")]), 8: list_of([struct({1: i32(1)})] * 17), 9: struct({1: i32(63)})}
    assert read({**fields, **nested, 300: i32(64)}) == {
        **{1: False, 2: -3, 3: -300, 4: -(2**31), 5: 2**63 - 1, 6: b"\0\xff"},
        **{7: [b"a", b""], 8: [{1: 1}] * 17, 9: {1: 63}, 300: 64},
    }


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31), 2**62, -(2**63)])
def test_integers_of_every_length(number):
    assert read({5: i64(number)}) == {5: number}


def test_fields_in_any_order_and_with_gaps():
    assert read({300: i32(7), 5: i64(1), 4: i32(2)}) == {300: 7, 5: 1, 4: 2}


UNWANTED = {
    "booleans": [boolean(True), boolean(False)],
    "numbers": [byte(1), i16(-1000), i32(1 << 30), i64(-(1 << 60)), double()],
    "bytes": [binary(b"x" * 1000)],
    "lists": [
        list_of([], 8),
        list_of([i64(1 << 40)] * 20),
        Wire(9, bytes((3 << 4 | 1, 1, 2, 1))),
        Wire(9, bytes((2 << 4 | 7,)) + bytes(16)),
        Wire(10, bytes((2 << 4 | 3, 5, 6))),
        list_of([list_of([binary("a")]), list_of([binary("b")])]),
    ],
    "structs": [struct({}), struct({1: boolean(True), 2: struct({400: binary("a")}), 3: list_of([struct({})])})],
    "maps": [Wire(11, b"\0"), Wire(11, b"\2" + bytes((8 << 4 | 5,)) + b"\1a\2\1b\4")],
}


@pytest.mark.parametrize("kind", UNWANTED)
def test_what_is_not_wanted_is_stepped_over(kind):
    unwanted = {20 + index: value for index, value in enumerate(UNWANTED[kind])}
    assert read({4: i32(1), **unwanted, 300: i32(2)}) == {4: 1, 300: 2}


def nested(levels: int) -> bytes:
    """Return an unwanted field that is a list of a list of a list ..."""
    return b"\x09" + varint(2 * 99) + bytes((1 << 4 | 9,)) * levels + b"\x01\x00"


BROKEN = {
    "nothing at all": (b"", "truncated at 0 bytes"),
    "no end": (struct({4: i32(1)}).data[:-1], "truncated at 2 bytes"),
    "a number without an end": (b"\x45" + b"\x80" * 3, "truncated"),
    "a number that goes on and on": (b"\x56" + b"\x80" * 30, "exceeds 64 bits"),
    "an i32 of 33 bits": (b"\x45" + varint(1 << 32) + b"\0", "exceeds 32 bits"),
    "an i64 of 70 bits": (b"\x56" + b"\xff" * 9 + b"\x7f\0", "exceeds 64 bits"),
    "more bytes than there are": (b"\x68" + varint(1000) + b"abc\0", "1000 bytes"),
    "2**32 bytes": (b"\x68" + varint(2**32 - 1) + b"abc\0", "remain"),
    "a list longer than the bytes": (b"\x79" + b"\xf8" + varint(10**9), "remain"),
    "an unwanted list longer than the bytes": (b"\x09" + varint(98) + b"\xf3" + varint(10**9), "remain"),
    "an unwanted map longer than the bytes": (b"\x0b" + varint(98) + varint(10**9) + b"\x55", "remain"),
    "a list longer than allowed": (struct({7: list_of([binary("")] * 21)}).data, "at most 20"),
    "a list of another type": (struct({7: list_of([i32(1)])}).data, "wire type 5"),
    "a field of another type": (struct({5: i32(1)}).data, "wire type 5"),
    "a number for a boolean": (struct({1: i32(1)}).data, "wire type 5"),
    "a boolean for a number": (struct({4: boolean(True)}).data, "wire type 1"),
    "bytes for a struct": (struct({9: binary("abc")}).data, "wire type 8"),
    "a field that comes twice": (struct({4: i32(1), 5: i64(1)}).data[:-1] + b"\x05\x08\x02\0", "twice"),
    "a required field that does not come": (struct({9: struct({2: i64(1)})}).data, "Point lacks"),
    "a wire type that does not exist": (b"\x0e" + varint(98) + b"\0", "wire type 14"),
    "the wire type 0, which ends a struct for Thrift": (b"\x45\2\xf0\0", "wire type 0"),
    "the wire type 0 in an unwanted struct": (b"\x0c" + varint(198) + b"\x10\0\0", "wire type 0"),
    "an id beyond 16 bits": (b"\xe1" * 2_341 + b"\0", "id 32774 .* at most 32767"),
    "an id beyond 16 bits in an unwanted struct": (b"\x0c" + varint(198) + b"\xf1" * 2_185 + b"\0\0", "id 32775"),
    "a written id beyond 16 bits": (b"\x05" + varint(1 << 16) + b"\2\0", "exceeds 16 bits"),
    "an unwanted i16 of 4 bytes": (b"\x04" + varint(198) + b"\x80" * 3 + b"\0\0", "exceeds 16 bits"),
    "an unwanted i32 of 6 bytes": (b"\x05" + varint(198) + b"\x80" * 5 + b"\0\0", "exceeds 32 bits"),
    "an unwanted i64 of 11 bytes": (b"\x06" + varint(198) + b"\x80" * 10 + b"\0\0", "exceeds 64 bits"),
    "nested without end": (nested(10_000), "nested more than 32 levels deep"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken(case):
    data, message = BROKEN[case]
    with pytest.raises(FooterError, match=message):
        read_struct(data, SHAPE)


def test_the_longest_numbers_and_ids():
    unwanted = {-(2**15): i16(-(2**15)), 20: i32(-(2**31)), 21: i64(-(2**63)), 2**15 - 1: boolean(True)}
    assert read({**unwanted, 4: i32(1)}) == {4: 1}
    assert read({30: struct(unwanted), 300: i32(1)}) == {300: 1}


def test_nesting_as_deep_as_allowed():
    assert read_struct(nested(30) + b"\0", SHAPE) == {}


def test_every_beginning_of_a_struct_is_cut_off():
    whole = struct({4: i32(1), 6: binary("abc"), 8: list_of([struct({1: i32(1000)})]), 40: list_of([i64(5)] * 3)}).data
    assert len(read_struct(whole, SHAPE)) == 3
    for end in range(len(whole)):
        with pytest.raises(FooterError):
            read_struct(whole[:end], SHAPE)


def test_bytes_behind_a_struct_are_not_looked_at():
    assert read_struct(struct({4: i32(1)}).data + b"\xff" * 10, SHAPE) == {4: 1}
