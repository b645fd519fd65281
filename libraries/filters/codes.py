"""Values as 64-bit codes that keep the order of the values: a <= b implies code(a) <= code(b).

The idea is from section 7.1 of the thesis behind near storage (Weigand 2025), made safe for equal codes. Bounds in a
footer and literals in a filter are converted by the same function, `code`. Where two values can share a code, equal
codes prove nothing. `LiteralCodes` therefore holds codes that bound the values below and above a literal, and all
comparisons with these codes are non-strict.

| kind | the code | one code, one value? |
| --- | --- | --- |
| boolean, unsigned | the number | yes |
| signed, date, time, timestamp, int96 (as nanoseconds) | the number, sign bit flipped | yes |
| float16, float32, float64 | as float64: negatives inverted, sign bit set on others | yes, but -0.0 and 0.0 differ |
| decimal | the unscaled number as signed, clamped to 64 bits | yes, except for the lowest and highest code |
| fixed (FIXED_LEN_BYTE_ARRAY) | the first 8 bytes, big endian | yes up to 8 bytes, else a prefix |
| text, binary | the first 8 bytes, big endian, filled up with NUL | a prefix; see `spelled_out` |
| unordered | none | |
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias, cast

import msgspec
import pyarrow as pa

from libraries.filters.tree import Literal

LOWEST, HIGHEST = 0, (1 << 64) - 1
SIGN = 1 << 63

KindName: TypeAlias = OneOf[
    "boolean",
    "signed",
    "unsigned",
    "float16",
    "float32",
    "float64",
    "text",
    "binary",
    "fixed",
    "decimal",
    "date",
    "time",
    "timestamp",
    "int96",
    "unordered",
]
Value: TypeAlias = int | float | bytes
"""A stored value: an int (a count or an unscaled decimal), a float, or bytes."""


class CodeKind(msgspec.Struct, frozen=True):
    """The kind of a column's values. `bits` is set for signed and unsigned kinds, `bytes` for fixed, `unit` for time
    and timestamp, `scale` for decimal."""

    name: KindName
    bits: int = 0
    bytes: int = 0
    unit: str = ""
    scale: int = 0

    @property
    def floating(self) -> bool:
        """Whether values may be NaN."""
        return self.name.startswith("float")


UNORDERED = CodeKind("unordered")


class LiteralCodes(NamedTuple):
    """The position of a literal among codes. A code of -1 or 2**64 is outside of 64 bits, so no stored value has it.

    A value equal to the literal has a code in [low, high]. A smaller value has at most the code `below`, and a greater
    value has at least the code `above`. If the codes of a chunk's bounds are exact (see `spelled_out`), a greater value
    has at least the code `above_if_exact`.
    """

    below: int
    low: int
    high: int
    above: int
    above_if_exact: int


def kind_of_type(arrow_type: pa.DataType) -> CodeKind:
    """Return the kind of the values of an Arrow type; UNORDERED for nested types and others without codes."""
    types = pa.types
    if types.is_integer(arrow_type):
        return CodeKind("signed" if types.is_signed_integer(arrow_type) else "unsigned", bits=arrow_type.bit_width)
    if types.is_floating(arrow_type):
        return CodeKind(_FLOATS[arrow_type.bit_width])
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return CodeKind("text")
    if types.is_binary(arrow_type) or types.is_large_binary(arrow_type):
        return CodeKind("binary")
    if types.is_boolean(arrow_type):
        return CodeKind("boolean")
    if types.is_date32(arrow_type):
        return CodeKind("date")
    if types.is_time(arrow_type):
        return CodeKind("time", unit=arrow_type.unit)
    if types.is_timestamp(arrow_type):
        return CodeKind("timestamp", unit=arrow_type.unit)
    if types.is_decimal(arrow_type):
        return CodeKind("decimal", scale=arrow_type.scale)
    return UNORDERED


_FLOATS: Mapping[int, KindName] = {16: "float16", 32: "float32", 64: "float64"}


def code(kind: CodeKind, value: Value) -> int:
    """Return the code of a value that is not NaN. A value outside the kind's range may get -1 or 2**64."""
    if isinstance(value, bytes):
        return int.from_bytes(value[:8].ljust(8, b"\0"), "big")
    if isinstance(value, float):
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return bits ^ HIGHEST if bits & SIGN else bits | SIGN
    if kind.name in ("unsigned", "boolean"):
        return value
    if kind.name == "decimal":
        return min(max(value + SIGN, LOWEST), HIGHEST)
    return value + SIGN


def spelled_out(kind: CodeKind, value: Value) -> bool:
    """Return whether the value is the smallest of all values that have the same code. Among such smallest values, a
    code identifies the value.

    The result is False for texts that have more than 8 bytes or end in NUL, for values of a fixed-size type of more
    than 8 bytes, and for decimals outside 64 bits. It is True for all other values.
    """
    if isinstance(value, bytes):
        return kind.bytes <= 8 if kind.name == "fixed" else len(value) <= 8 and not value.endswith(b"\0")
    return kind.name != "decimal" or LOWEST < code(kind, value) < HIGHEST


def literal_codes(kind: CodeKind, literal: Literal) -> LiteralCodes | None:
    """Return the codes of a literal that is neither null nor NaN. Return None if pyarrow reads columns of `kind` as
    another type than the literal's, because values and literal cannot be compared then."""
    value = literal_value(kind, literal)
    if value is None:
        return None
    if isinstance(value, float):
        zero = value == 0.0
        low, high = code(kind, -0.0 if zero else value), code(kind, 0.0 if zero else value)
        return LiteralCodes(low - 1, low, high, high + 1, high + 1)
    if isinstance(value, bytes):
        own = code(kind, value)
        if kind.name == "fixed" and kind.bytes <= 8:
            return LiteralCodes(own - 1, own, own, own + 1, own + 1)
        least = spelled_out(kind, value)
        return LiteralCodes(own - least, own, own, own, own + least)
    floor, ceiling = math.floor(value), math.ceil(value)
    below, low, high, above = (code(kind, number) for number in (ceiling - 1, ceiling, floor, floor + 1))
    return LiteralCodes(below, low, high, above, above)


def literal_value(kind: CodeKind, literal: Literal) -> Fraction | float | bytes | None:
    """Convert a literal to a value of the column. Numbers and times become fractions in the column's unit.

    Returns None if pyarrow reads columns of `kind` as another type than the literal's, because values and literal
    cannot be compared then.
    """
    type_ = literal.type
    match kind.name:
        case "boolean" if pa.types.is_boolean(type_):
            return Fraction(bool(literal.value))
        case "signed" if pa.types.is_signed_integer(type_) or pa.types.is_duration(type_):
            return Fraction(_count(literal))
        case "unsigned" if pa.types.is_unsigned_integer(type_):
            return Fraction(_count(literal))
        case "float16" | "float32" | "float64" if str(type_) == _ARROW_FLOATS[kind.name]:
            # Convert with Arrow, like the row filter, so that 0.1 becomes the same float32 in both.
            return cast(float, pa.scalar(literal.value, type_).as_py())
        case "text" | "binary" if isinstance(literal.value, str | bytes) and not pa.types.is_fixed_size_binary(type_):
            # Arrow reads an enum as binary; text and binary compare alike, by their bytes.
            return literal.value.encode() if isinstance(literal.value, str) else literal.value
        case "fixed" if pa.types.is_fixed_size_binary(type_) and type_.byte_width == kind.bytes:
            return cast(bytes, literal.value)
        case "decimal" if pa.types.is_decimal(type_) and type_.scale == kind.scale:
            return Fraction(cast(Decimal, literal.value)) * Fraction(10) ** kind.scale
        case "date" if pa.types.is_date(type_):
            return Fraction(_count(literal), 86_400_000 if pa.types.is_date64(type_) else 1)
        case "time" if pa.types.is_time(type_):
            return Fraction(_count(literal) * _A_SECOND[kind.unit], _A_SECOND[type_.unit])
        case "timestamp" | "int96" if pa.types.is_timestamp(type_):
            return Fraction(_count(literal) * _A_SECOND[kind.unit or "ns"], _A_SECOND[type_.unit])
    return None


_ARROW_FLOATS = {"float16": "halffloat", "float32": "float", "float64": "double"}
_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _count(literal: Literal) -> int:
    """Return the integer that Arrow stores for a literal of any Python type."""
    scalar = pa.scalar(literal.value, literal.type)
    return cast(int, scalar.as_py() if pa.types.is_integer(literal.type) else scalar.value)
