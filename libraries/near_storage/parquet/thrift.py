"""Read Thrift's compact protocol from untrusted bytes.

The caller names the fields that it wants from each struct (`Struct`, `ListOf`, or a scalar). Other fields are skipped.
Each byte is read once, and a length is used only if that many bytes exist. Nesting is bounded. Every violation raises
`FooterError`.

Protocol: thrift-compact-protocol.md of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from libraries.near_storage.errors import FooterError

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
BOOLEAN = TRUE
"""The wanted type of a boolean field. The protocol encodes the value of the field as the type TRUE or FALSE."""

MOST_NESTING = 32
"""Limit of nesting in skipped values; parquet.thrift needs six."""

MOST_ID = (1 << 15) - 1
"""The largest field id. Thrift stores ids in 16 bits, in which a larger id would be that of another field."""

_BITS = {I16: 16, I32: 32, I64: 64}
_MOST_BYTES = {I16: 3, I32: 5, I64: 10}


@dataclass(frozen=True)
class ListOf:
    """A list whose elements have one wanted type."""

    element: Wanted
    most: int


@dataclass(frozen=True)
class Struct:
    """A struct: its name in the Thrift file, the wanted fields by id, and the ids of the required fields."""

    name: str
    fields: Mapping[int, Wanted]
    required: frozenset[int] = field(default=frozenset())


Wanted: TypeAlias = int | ListOf | Struct
"""A type that the caller wants to read: BOOLEAN (only as a field, not in a list), BYTE, I16, I32, I64, BINARY, a list
or a struct."""


def read_struct(data: bytes, struct: Struct) -> dict[int, Any]:
    """Read the wanted fields of a struct at the start of `data`. Return values by field id: bool, int, bytes, list or
    dict.

    Bytes after the struct are ignored. Raises FooterError if the bytes violate the protocol or end early, if a wanted
    field occurs twice or has another type, if a required field is missing, or if a list exceeds its limit.
    """
    return read_struct_at(data, 0, struct)[0]


def read_struct_at(data: bytes | memoryview, position: int, struct: Struct) -> tuple[dict[int, Any], int]:
    """Read a struct at `position`. Return the wanted fields, and the position after the struct."""
    reader = _Reader(data, position)
    try:
        return reader.struct(struct), reader.position
    except IndexError as error:
        # Single bytes are read without a check for the end, because the check would double the time.
        raise FooterError(f"Thrift: {struct.name} is truncated at {len(data)} bytes") from error


class _Reader:
    def __init__(self, data: bytes | memoryview, position: int) -> None:
        self.data = data
        self.position = position

    def struct(self, wanted: Struct) -> dict[int, Any]:
        data = self.data
        position = self.position
        fields = wanted.fields
        found: dict[int, Any] = {}
        number = 0
        while header := data[position]:
            position += 1
            wire = header & 15
            if header > 15:
                number += header >> 4
            else:
                self.position = position
                number = self.integer(16)
                position = self.position
            if number not in fields:
                self.position = position
                if number > MOST_ID:
                    raise self.no_id(number)
                # Thrift's C++ reader ends the struct at the wire type 0, whatever the id. `skip` refuses this type.
                if wire not in (TRUE, FALSE):
                    self.skip(wire, 1)
                position = self.position
                continue
            if number in found:
                raise FooterError(f"Thrift: {wanted.name} has its field {number} twice, at byte {position}")
            kind = fields[number]
            if kind == wire and kind in (I32, I64) and (byte := data[position]) < 128:
                # Most fields are small integers; handle them without a call.
                found[number] = (byte >> 1) ^ -(byte & 1)
                position += 1
                continue
            self.position = position
            found[number] = self.value(wire, kind, wanted, number)
            position = self.position
        self.position = position + 1
        if not wanted.required <= found.keys():
            missing = sorted(wanted.required - found.keys())
            raise FooterError(f"Thrift: {wanted.name} lacks its required fields {missing}, at byte {position}")
        return found

    def value(self, wire: int, kind: Wanted, holder: Struct, number: int) -> Any:
        """Read the value of a field or of a list's element."""
        if kind == BOOLEAN and wire in (TRUE, FALSE):
            return wire == TRUE
        if isinstance(kind, Struct) and wire == STRUCT:
            return self.struct(kind)
        if isinstance(kind, ListOf) and wire == LIST:
            return self.list(kind, holder, number)
        if wire != kind:
            wanted = STRUCT if isinstance(kind, Struct) else LIST if isinstance(kind, ListOf) else kind
            raise FooterError(
                f"Thrift: field {number} of {holder.name}, at byte {self.position}, has the wire type {wire} "
                f"instead of {wanted}"
            )
        if kind == BINARY:
            return self.binary()
        return self.byte() if kind == BYTE else self.integer(_BITS[kind])

    def list(self, wanted: ListOf, holder: Struct, number: int) -> list[Any]:
        wire, size = self.list_header()
        if size > wanted.most:
            raise FooterError(
                f"Thrift: {holder.name}'s field {number} has {size} elements, at most {wanted.most} are allowed"
            )
        return [self.value(wire, wanted.element, holder, number) for _ in range(size)]

    def list_header(self) -> tuple[int, int]:
        header = self.data[self.position]
        self.position += 1
        size = header >> 4
        if size == 15:
            size = self.unsigned(32)
        # Every element takes at least one byte.
        self.require(size)
        return header & 15, size

    def binary(self) -> bytes:
        size = self.unsigned(32)
        self.require(size)
        start = self.position
        self.position = start + size
        return bytes(self.data[start : self.position])

    def byte(self) -> int:
        raw = self.data[self.position]
        self.position += 1
        return raw - 256 if raw > 127 else raw

    def integer(self, bits: int) -> int:
        raw = self.unsigned(bits)
        return (raw >> 1) ^ -(raw & 1)

    def unsigned(self, bits: int) -> int:
        value = shift = 0
        start = self.position
        while True:
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift >= bits:
                raise FooterError(f"Thrift: the number at byte {start} exceeds {bits} bits")
        if value >> bits:
            raise FooterError(f"Thrift: the number at byte {start} exceeds {bits} bits")
        return value

    def require(self, size: int) -> None:
        left = len(self.data) - self.position
        if size > left:
            raise FooterError(
                f"Thrift: {size} bytes or elements are declared at byte {self.position}, but only {left} bytes remain"
            )

    def no_id(self, number: int) -> FooterError:
        return FooterError(f"Thrift: field id {number} before byte {self.position}, at most {MOST_ID} is allowed")

    def advance(self, size: int) -> None:
        self.require(size)
        self.position += size

    def skip(self, wire: int, depth: int) -> None:
        """Skip a value. Boolean fields need no call, because the type of the field holds the value."""
        if depth > MOST_NESTING:
            raise FooterError(f"Thrift: nested more than {MOST_NESTING} levels deep at byte {self.position}")
        if I16 <= wire <= I64:
            data = self.data
            position = self.position
            while data[position] > 127:
                position += 1
            position += 1
            if position - self.position > _MOST_BYTES[wire]:
                raise FooterError(f"Thrift: the number at byte {self.position} exceeds {_BITS[wire]} bits")
            self.position = position
        elif wire == BINARY:
            self.advance(self.unsigned(32))
        elif wire in (LIST, SET):
            element, size = self.list_header()
            self.skip_elements(element, size, depth + 1)
        elif wire == STRUCT:
            self.skip_struct(depth + 1)
        elif wire == MAP:
            self.skip_map(depth + 1)
        elif wire in (TRUE, FALSE, BYTE):
            self.advance(1)
        elif wire == DOUBLE:
            self.advance(8)
        else:
            raise FooterError(f"Thrift: unknown wire type {wire} at byte {self.position}")

    def skip_elements(self, wire: int, size: int, depth: int) -> None:
        if wire in (TRUE, FALSE, BYTE):
            self.advance(size)
            return
        for _ in range(size):
            self.skip(wire, depth)

    def skip_struct(self, depth: int) -> None:
        data = self.data
        number = 0
        while header := data[self.position]:
            self.position += 1
            wire = header & 15
            number = number + (header >> 4) if header > 15 else self.integer(16)
            if number > MOST_ID:
                raise self.no_id(number)
            if wire not in (TRUE, FALSE):
                self.skip(wire, depth)
        self.position += 1

    def skip_map(self, depth: int) -> None:
        size = self.unsigned(32)
        if not size:
            return
        self.require(size)
        types = self.data[self.position]
        self.position += 1
        for _ in range(size):
            self.skip(types >> 4, depth)
            self.skip(types & 15, depth)
