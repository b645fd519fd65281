"""Write Thrift's compact protocol, as far as broken and unusual footers need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Wire(NamedTuple):
    """A value: its wire type as a field (1 and 2 are true and false), and its bytes."""

    type: int
    data: bytes


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def zigzag(number: int) -> bytes:
    return varint(number * 2 if number >= 0 else -number * 2 - 1)


def boolean(value: bool) -> Wire:
    return Wire(1 if value else 2, b"")


def byte(value: int) -> Wire:
    return Wire(3, value.to_bytes(1, "little", signed=True))


def i16(value: int) -> Wire:
    return Wire(4, zigzag(value))


def i32(value: int) -> Wire:
    return Wire(5, zigzag(value))


def i64(value: int) -> Wire:
    return Wire(6, zigzag(value))


def double(data: bytes = bytes(8)) -> Wire:
    return Wire(7, data)


def binary(data: bytes | str) -> Wire:
    data = data.encode() if isinstance(data, str) else data
    return Wire(8, varint(len(data)) + data)


def list_of(items: Iterable[Wire], type_: int = 12) -> Wire:
    items = list(items)
    type_ = items[0].type if items else type_
    head = bytes((len(items) << 4 | type_,)) if len(items) < 15 else bytes((15 << 4 | type_,)) + varint(len(items))
    return Wire(9, head + b"".join(item.data for item in items))


def struct(fields: Mapping[int, Wire | None]) -> Wire:
    """Encode fields by id in the given order; None is omitted. Ids are written as differences where they fit."""
    out = bytearray()
    last = 0
    for number, value in fields.items():
        if value is None:
            continue
        if 0 < number - last < 16:
            out.append(number - last << 4 | value.type)
        else:
            out.append(value.type)
            out += zigzag(number)
        out += value.data
        last = number
    return Wire(12, bytes(out) + b"\0")
