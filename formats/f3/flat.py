"""FlatBuffers that nobody vouches for: every offset and length is checked against the buffer before it is followed.

The `flatbuffers` package has no verifier for Python, and reading through it walks wherever the bytes say. Here a table is
a view of a buffer, and a field is looked up when it is asked for: a footer of 10,000 columns costs what is read of it.
This module knows the wire format (https://flatbuffers.dev/internals) and no schema.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from formats.f3.errors import F3Error

_U8, _U16, _U32, _U64, _I32 = (struct.Struct(f"<{code}") for code in "BHIQi")
MOST_ELEMENTS = 1 << 26
"""Of a vector: far beyond any file, and far below what would fill memory."""


class Table:
    """One table of a buffer. `what` names it in errors: 'footer', 'column metadata 3'."""

    __slots__ = ("_fields", "_layout_bytes", "_position", "_what", "data")

    def __init__(self, data: memoryview, position: int, what: str) -> None:
        """Check the table's vtable. Raises F3Error where it does not lie in the buffer."""
        self.data, self._position, self._what = data, position, what
        layout = position - _at(_I32, data, position, what)
        self._layout_bytes = _at(_U16, data, layout, what)
        if self._layout_bytes < 4 or self._layout_bytes % 2 or layout + self._layout_bytes > len(data):
            raise F3Error(f"{what}: a table's layout at {layout} does not fit into {len(data)} bytes")
        self._fields = layout

    def _slot(self, slot: int) -> int:
        """Where a field lies; 0 when it is absent."""
        entry = 4 + 2 * slot
        if entry >= self._layout_bytes:
            return 0
        offset = _at(_U16, self.data, self._fields + entry, self._what)
        return self._position + offset if offset else 0

    def has(self, slot: int) -> bool:
        """Whether the field is stored."""
        return self._slot(slot) != 0

    def u8(self, slot: int, default: int = 0) -> int:
        """An unsigned byte, or its default."""
        return self._scalar(_U8, slot, default)

    def u32(self, slot: int, default: int = 0) -> int:
        """Four bytes, unsigned."""
        return self._scalar(_U32, slot, default)

    def u64(self, slot: int, default: int = 0) -> int:
        """Eight bytes, unsigned."""
        return self._scalar(_U64, slot, default)

    def _scalar(self, kind: struct.Struct, slot: int, default: int) -> int:
        place = self._slot(slot)
        return _at(kind, self.data, place, self._what) if place else default

    def table(self, slot: int) -> Table | None:
        """A table that the field points to; None when absent."""
        place = self._slot(slot)
        return Table(self.data, _followed(self.data, place, self._what), self._what) if place else None

    def needed(self, slot: int, name: str) -> Table:
        """The same, for a field that must be there. Raises F3Error."""
        found = self.table(slot)
        if found is None:
            raise F3Error(f"{self._what}: has no {name}")
        return found

    def bytes(self, slot: int) -> memoryview | None:
        """A vector of bytes; None when absent."""
        found = self._vector(slot, 1)
        return None if found is None else self.data[found[0] : found[0] + found[1]]

    def text(self, slot: int) -> str | None:
        """A string; None when absent. Raises F3Error for what is no UTF-8."""
        found = self.bytes(slot)
        return None if found is None else _text(found, self._what)

    def u32s(self, slot: int) -> memoryview | None:
        """A vector of four-byte numbers; None when absent."""
        return self._numbers(slot, 4, "I")

    def u64s(self, slot: int) -> memoryview | None:
        """A vector of eight-byte numbers; None when absent."""
        return self._numbers(slot, 8, "Q")

    def u8s(self, slot: int) -> memoryview | None:
        """A vector of single bytes; None when absent."""
        return self.bytes(slot)

    def _numbers(self, slot: int, width: int, code: str) -> memoryview | None:
        found = self._vector(slot, width)
        if found is None:
            return None
        return self.data[found[0] : found[0] + found[1] * width].cast(code)

    def count(self, slot: int) -> int:
        """How many tables a vector of tables holds; 0 when absent."""
        found = self._vector(slot, 4)
        return 0 if found is None else found[1]

    def element(self, slot: int, index: int) -> Table:
        """One table of a vector. Raises F3Error past its end."""
        found = self._vector(slot, 4)
        if found is None or not 0 <= index < found[1]:
            count = 0 if found is None else found[1]
            raise F3Error(f"{self._what}: element {index} is asked of a vector of {count}")
        return Table(self.data, _followed(self.data, found[0] + 4 * index, self._what), self._what)

    def elements(self, slot: int) -> Iterator[Table]:
        """All tables of a vector, in order."""
        for index in range(self.count(slot)):
            yield self.element(slot, index)

    def texts(self, slot: int) -> list[str]:
        """A vector of strings; empty when absent."""
        found = self._vector(slot, 4)
        if found is None:
            return []
        texts = []
        for index in range(found[1]):
            place = _followed(self.data, found[0] + 4 * index, self._what)
            start, count = _checked_vector(self.data, place, 1, self._what)
            texts.append(_text(self.data[start : start + count], self._what))
        return texts

    def _vector(self, slot: int, width: int) -> tuple[int, int] | None:
        """Where the elements of a vector begin, and how many there are."""
        place = self._slot(slot)
        if not place:
            return None
        return _checked_vector(self.data, _followed(self.data, place, self._what), width, self._what)


def root(data: memoryview, what: str) -> Table:
    """The root table of a buffer without a size prefix. Raises F3Error."""
    return Table(data, _followed(data, 0, what), what)


def _checked_vector(data: memoryview, place: int, width: int, what: str) -> tuple[int, int]:
    count = _at(_U32, data, place, what)
    if count > MOST_ELEMENTS or place + 4 + count * width > len(data):
        raise F3Error(f"{what}: a vector of {count} elements at {place} does not fit into {len(data)} bytes")
    return place + 4, count


def _followed(data: memoryview, place: int, what: str) -> int:
    """Where the offset at `place` leads."""
    target = place + _at(_U32, data, place, what)
    if target >= len(data):
        raise F3Error(f"{what}: an offset at {place} leads to {target}, behind the {len(data)} bytes that there are")
    return target


def _at(kind: struct.Struct, data: memoryview, place: int, what: str) -> int:
    if not 0 <= place <= len(data) - kind.size:
        raise F3Error(f"{what}: {kind.size} bytes at {place} do not lie in the {len(data)} bytes that there are")
    value: int = kind.unpack_from(data, place)[0]
    return value


def _text(data: memoryview, what: str) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise F3Error(f"{what}: a name is no UTF-8 ({error.reason} at byte {error.start})") from None
