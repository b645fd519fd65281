"""Untrusted FlatBuffers: tables of the official builder are read, and forged bytes never cause reads outside the
buffer."""

import contextlib
import random
import struct

import flatbuffers
import pytest

from libraries.f3.container.flat import Table, root
from libraries.f3.errors import F3Error


def example() -> bytes:
    """Return a table with a scalar of each width, a vector of each kind, a nested table, and a vector of tables."""
    builder = flatbuffers.Builder(64)
    names = [builder.CreateString(name) for name in ("one", "zwölf")]
    builder.StartObject(1)
    builder.PrependUint32Slot(0, 7, 0)
    inner = builder.EndObject()
    vectors = []
    numbers = ((4, builder.PrependUint32, (1, 2**32 - 1)), (8, builder.PrependUint64, (3, 2**64 - 1)))
    for width, prepend, values in numbers:
        builder.StartVector(width, len(values), width)
        for value in reversed(values):
            prepend(value)
        vectors.append(builder.EndVector())
    for offsets in (names, [inner, inner, inner]):
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        vectors.append(builder.EndVector())
    text = builder.CreateByteVector(b"abc")
    builder.StartObject(10)
    builder.PrependUint8Slot(0, 200, 0)
    builder.PrependUint16Slot(1, 60_000, 0)
    builder.PrependUint32Slot(2, 2**32 - 1, 0)
    builder.PrependUint64Slot(3, 2**64 - 1, 0)
    for slot, offset in zip((4, 5, 6, 7), vectors, strict=True):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.PrependUOffsetTRelativeSlot(8, text, 0)
    builder.PrependUOffsetTRelativeSlot(9, inner, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def everything(table: Table) -> list[object]:
    """Return all fields of the example."""
    inner = table.table(9)
    return [
        table.u8(0),
        table.u16(1),
        table.u32(2),
        table.u64(3),
        list(table.u32s(4) or ()),
        list(table.u64s(5) or ()),
        table.texts(6),
        [each.u32(0) for each in table.elements(7)],
        bytes(table.bytes(8) or b""),
        inner.u32(0) if inner is not None else None,
        table.count(7),
        table.has(3),
        table.has(99),
    ]


EXPECTED = [
    200, 60_000, 2**32 - 1, 2**64 - 1, [1, 2**32 - 1], [3, 2**64 - 1], ["one", "zwölf"], [7, 7, 7], b"abc", 7, 3, True,
    False,
]  # fmt: skip


def test_what_the_builder_writes_is_read():
    assert everything(root(memoryview(example()), "example")) == EXPECTED


def test_absent_fields_are_zero_or_nothing():
    builder = flatbuffers.Builder(16)
    builder.StartObject(0)
    builder.Finish(builder.EndObject())
    table = root(memoryview(bytes(builder.Output())), "empty")
    assert everything(table) == [0, 0, 0, 0, [], [], [], [], b"", None, 0, False, False]
    with pytest.raises(F3Error, match="empty: has no schema"):
        table.needed(3, "schema")
    with pytest.raises(F3Error, match="element 0 is needed, but the vector has 0 elements"):
        table.element(3, 0)


def attempted(data: bytes) -> None:
    """Read everything. Only F3Error may be raised."""
    with contextlib.suppress(F3Error):
        everything(root(memoryview(data), "example"))


def test_every_offset_and_length_may_be_forged():
    whole = example()
    for place in range(0, len(whole) - 3):
        for forged in (0, 1, 3, len(whole), 2**31 - 1, 2**31, 2**32 - 1, 2**32 - place):
            attempted(whole[:place] + struct.pack("<I", forged % 2**32) + whole[place + 4 :])


def test_every_beginning_of_a_buffer_ends_in_an_error_or_in_values():
    whole = example()
    for length in range(len(whole)):
        attempted(whole[:length])


def test_random_bytes_end_in_an_error_or_in_values():
    random.seed(5)
    for _ in range(2000):
        attempted(random.randbytes(random.randrange(1, 80)))


def test_a_field_past_the_end_is_an_error_with_its_place():
    with pytest.raises(F3Error, match=r"footer: an offset at 0 leads to 99, outside the buffer of 8 bytes"):
        root(memoryview(struct.pack("<II", 99, 0)), "footer")


def test_a_vector_that_is_too_long_is_an_error():
    whole = bytearray(example())
    place = whole.index(b"abc") - 4
    whole[place : place + 4] = struct.pack("<I", 1000)
    with pytest.raises(F3Error, match="a vector of 1000 elements"):
        root(memoryview(bytes(whole)), "example").bytes(8)


def test_tables_that_point_to_each_other_are_walked_over_for_a_while_only():
    """A vector has 1,000 offsets to the same table.

    With four levels of such vectors a walk would visit 10^12 tables.
    """
    count = 1000
    # The layout at 4 has one field. The table at 12 points to the vector at 24.
    data = struct.pack("<I4H", 12, 6, 8, 4, 0) + struct.pack("<iI", 8, 8) + bytes(4)
    last = 28 + 4 * count
    vector = struct.pack("<I", count) + b"".join(struct.pack("<I", last - place) for place in range(28, last, 4))
    table = root(memoryview(data + vector + struct.pack("<iI", last - 4, 0)), "loop")

    assert len(list(table.elements(0))) == count
    with pytest.raises(F3Error, match=r"more FlatBuffers tables or strings are referenced than \d+ bytes can hold"):
        list(table.elements(0))
