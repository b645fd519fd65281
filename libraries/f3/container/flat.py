"""Read untrusted FlatBuffers. Every offset and length is checked against the buffer before it is used.

The `flatbuffers` package has no verifier for Python and follows whatever offsets the bytes contain. Here a table is a
view of a buffer, and its fields are looked up on demand. Reading part of a footer with 10,000 columns therefore does
not parse the rest. Tables can refer to each other in cycles, so walks over vectors of tables have a budget. This module
depends on the wire format (https://flatbuffers.dev/internals), not on a schema. Every method raises F3Error if the
bytes do not hold what is requested.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from libraries.f3.errors import F3Error

_U8, _U16, _U32, _U64, _I32 = (struct.Struct(f"<{code}") for code in "BHIQi")


_MOST_SLOTS = 16
"""Maximum number of fields that are read of a table. All tables of F3 have fewer, and forged tables cost little
time."""


class _Walk:
    """State that the tables of a buffer share.

    `layouts` are the layouts (offsets of fields) read so far, because several tables may have the same one. `left` is
    the budget: the number of elements of vectors that may still be visited. In a buffer where no two offsets lead to
    the same table, a table takes at least eight bytes: the offset to the table, and the table's offset to its layout.
    The budget is twice the number of tables that this allows.
    """

    __slots__ = ("layouts", "left")

    def __init__(self, size_bytes: int) -> None:
        self.left = size_bytes // 4 + 16
        self.layouts: dict[int, tuple[int, ...]] = {}


class Table:
    """A table of a buffer. `what` names it in errors, for example 'footer' or 'column metadata 3'."""

    __slots__ = ("_data", "_offsets", "_position", "_walk", "_what")

    def __init__(self, data: memoryview, position: int, what: str, walk: _Walk) -> None:
        """Check that the table's layout is inside the buffer."""
        self._data, self._position, self._what, self._walk = data, position, what, walk
        layout = position - _at(_I32, data, position, what)
        offsets = walk.layouts.get(layout)
        if offsets is None:
            offsets = walk.layouts[layout] = _layout(data, layout, what)
        self._offsets = offsets

    def _slot(self, slot: int) -> int:
        """Return the position of a field in the buffer, or 0 if the field is absent."""
        if slot >= len(self._offsets):
            return 0
        offset = self._offsets[slot]
        return self._position + offset if offset else 0

    def has(self, slot: int) -> bool:
        """Return whether the field is stored."""
        return self._slot(slot) != 0

    def u8(self, slot: int) -> int:
        """Return an unsigned byte, or 0 if the field is absent."""
        return self._scalar(_U8, slot)

    def u16(self, slot: int) -> int:
        """Return an unsigned 16-bit number, or 0 if the field is absent."""
        return self._scalar(_U16, slot)

    def u32(self, slot: int) -> int:
        """Return an unsigned 32-bit number, or 0 if the field is absent."""
        return self._scalar(_U32, slot)

    def u64(self, slot: int) -> int:
        """Return an unsigned 64-bit number, or 0 if the field is absent."""
        return self._scalar(_U64, slot)

    def _scalar(self, kind: struct.Struct, slot: int) -> int:
        place = self._slot(slot)
        return _at(kind, self._data, place, self._what) if place else 0

    def table(self, slot: int) -> Table | None:
        """Return the table that the field points to, or None if the field is absent."""
        place = self._slot(slot)
        if not place:
            return None
        return Table(self._data, _followed(self._data, place, self._what), self._what, self._walk)

    def needed(self, slot: int, name: str) -> Table:
        """Return the table that the field points to. Raises F3Error if the field is absent."""
        found = self.table(slot)
        if found is None:
            raise F3Error(f"{self._what}: has no {name}")
        return found

    def bytes(self, slot: int) -> memoryview | None:
        """Return a vector of bytes, or None if the field is absent."""
        found = self._vector(slot, 1)
        return None if found is None else self._data[found[0] : found[0] + found[1]]

    def u32s(self, slot: int) -> memoryview | None:
        """Return a vector of 32-bit numbers, or None if the field is absent."""
        found = self._vector(slot, 4)
        return None if found is None else self._data[found[0] : found[0] + found[1] * 4].cast("I")

    def u64s(self, slot: int) -> memoryview | None:
        """Return a vector of 64-bit numbers, or None if the field is absent."""
        found = self._vector(slot, 8)
        return None if found is None else self._data[found[0] : found[0] + found[1] * 8].cast("Q")

    def count(self, slot: int) -> int:
        """Return the length of a vector of tables, or 0 if the field is absent."""
        found = self._vector(slot, 4)
        return 0 if found is None else found[1]

    def element(self, slot: int, index: int) -> Table:
        """Return one table of a vector."""
        found = self._vector(slot, 4)
        count = 0 if found is None else found[1]
        if found is None or not 0 <= index < count:
            has = f"the vector has {count} elements, counted from 0"
            raise F3Error(f"{self._what}: element {index} is needed, but {has}")
        return Table(self._data, _followed(self._data, found[0] + 4 * index, self._what), self._what, self._walk)

    def elements(self, slot: int) -> Iterator[Table]:
        """Yield the tables of a vector, in order."""
        found = self._vector(slot, 4)
        if found is None:
            return
        start, count = found
        self._spend(count)
        for place in range(start, start + 4 * count, 4):
            yield Table(self._data, _followed(self._data, place, self._what), self._what, self._walk)

    def texts(self, slot: int) -> list[str]:
        """Return a vector of strings. It is empty if the field is absent."""
        found = self._vector(slot, 4)
        if found is None:
            return []
        self._spend(found[1])
        texts = []
        for index in range(found[1]):
            place = _followed(self._data, found[0] + 4 * index, self._what)
            start, count = _checked_vector(self._data, place, 1, self._what)
            texts.append(_text(self._data[start : start + count], self._what))
        return texts

    def _spend(self, count: int) -> None:
        self._walk.left -= count
        if self._walk.left < 0:
            raise F3Error(
                f"{self._what}: more FlatBuffers tables or strings are referenced than {len(self._data)} bytes can "
                "hold; several references lead to the same place"
            )

    def _vector(self, slot: int, width: int) -> tuple[int, int] | None:
        """Return the position of a vector's first element and the number of elements, or None if the field is
        absent."""
        place = self._slot(slot)
        if not place:
            return None
        return _checked_vector(self._data, _followed(self._data, place, self._what), width, self._what)


def root(data: memoryview, what: str) -> Table:
    """Return the root table of a buffer without a size prefix. `data` must consist of unsigned bytes (format 'B')."""
    return Table(data, _followed(data, 0, what), what, _Walk(len(data)))


def _layout(data: memoryview, place: int, what: str) -> tuple[int, ...]:
    """Return the offset of each field from the table's start. It is 0 for absent fields."""
    size_bytes = _at(_U16, data, place, what)
    if size_bytes < 4 or size_bytes % 2 or place + size_bytes > len(data):
        raise F3Error(f"{what}: the vtable at {place} of a FlatBuffers table has an invalid size of {size_bytes} bytes")
    return struct.unpack_from(f"<{min((size_bytes - 4) // 2, _MOST_SLOTS)}H", data, place + 4)


def _checked_vector(data: memoryview, place: int, width: int, what: str) -> tuple[int, int]:
    count = _at(_U32, data, place, what)
    if place + 4 + count * width > len(data):
        raise F3Error(f"{what}: a vector of {count} elements at {place} exceeds the buffer of {len(data)} bytes")
    return place + 4, count


def _followed(data: memoryview, place: int, what: str) -> int:
    """Return the position that the offset stored at `place` leads to."""
    target = place + _at(_U32, data, place, what)
    if target >= len(data):
        raise F3Error(f"{what}: an offset at {place} leads to {target}, outside the buffer of {len(data)} bytes")
    return target


def _at(kind: struct.Struct, data: memoryview, place: int, what: str) -> int:
    if place >= 0:
        try:
            value: int = kind.unpack_from(data, place)[0]
        except struct.error:
            pass
        else:
            return value
    raise F3Error(f"{what}: {kind.size} bytes at {place} are outside the buffer of {len(data)} bytes")


def _text(data: memoryview, what: str) -> str:
    # F3 stores only section names as strings. Without a limit, many references to one long string would be expensive.
    if len(data) > 256:
        raise F3Error(f"{what}: a section name has {len(data)} bytes; at most 256 are allowed")
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise F3Error(f"{what}: a section name is not UTF-8 ({error.reason} at byte {error.start})") from None
