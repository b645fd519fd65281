"""The position of a literal among the values of a column's type: at a value, or between two neighbours.

The position is enough for exact comparisons across types: `i < 2.5` on integers selects the integers up to 2. All
decisions use exact fractions, with one exception. On float columns, a decimal literal means the nearest float, as in
DuckDB and the SQL standard.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pat

from libraries.filters import datetime_text, values
from libraries.filters.errors import PredicateError
from libraries.filters.kinds import COUNTED, TypeFamily, integer_range, kind_of, units_per_second, zone_of
from libraries.filters.tree import Literal


@dataclass(frozen=True)
class At:
    """The literal is a value of the type."""

    value: object


@dataclass(frozen=True)
class Between:
    """The literal is strictly between two neighbouring values of the type. None means that there is no value on that
    side."""

    below: object
    above: object


@dataclass(frozen=True)
class Nowhere:
    """The literal is NaN, which is unequal to and unordered with every value."""


NUMBERS = frozenset({TypeFamily.INTEGER, TypeFamily.FLOAT, TypeFamily.DECIMAL})


def place(literal: Literal, type: pa.DataType) -> At | Between | Nowhere:
    """Return the position of a non-null literal among the values of `type`, which has an order and is not a dictionary.

    Values are represented as in `values.py`. Raises PredicateError if the literal cannot be compared with such values.
    """
    kind, given = kind_of(type), kind_of(literal.type)
    if literal.type == type and kind is not TypeFamily.FLOAT:
        return At(literal.value)
    if kind in NUMBERS and given in NUMBERS:
        return _number(literal, type)
    if kind in (TypeFamily.TEXT, TypeFamily.BINARY) and given in (TypeFamily.TEXT, TypeFamily.BINARY):
        return _characters(literal, type)
    if kind in COUNTED:
        return _counted(_count_in_seconds(literal, type), type)
    if kind is TypeFamily.BOOL and given is TypeFamily.BOOL:
        return At(literal.value)
    raise _incomparable(literal, type)


def _incomparable(literal: Literal, type: pa.DataType, hint: str = "") -> PredicateError:
    hint = hint or "use a literal of the column's type"
    return PredicateError(f"values of type {type} cannot be compared with a literal of type {literal.type}: {hint}")


def _number(literal: Literal, type: pa.DataType) -> At | Between | Nowhere:
    if values.is_nan(literal):
        return Nowhere()
    kind = kind_of(type)
    if isinstance(literal.value, float) and math.isinf(literal.value):
        return _infinite(literal.value, type)
    number = values.exact(literal)
    if kind is TypeFamily.FLOAT:
        return _among_floats(number, type.bit_width, rounding=kind_of(literal.type) is TypeFamily.DECIMAL)
    if kind is TypeFamily.INTEGER:
        return _among_integers(number, *integer_range(type))
    most = 10**type.precision - 1
    place = _among_integers(number * Fraction(10) ** type.scale, -most, most)
    if isinstance(place, At):
        return At(_scaled(place.value, type.scale))
    return Between(_scaled(place.below, type.scale), _scaled(place.above, type.scale))


def _infinite(value: float, type: pa.DataType) -> At | Between:
    if kind_of(type) is TypeFamily.FLOAT:
        return At(value)
    if kind_of(type) is TypeFamily.INTEGER:
        low, high = integer_range(type)
        return Between(high, None) if value > 0 else Between(None, low)
    most = _scaled(10**type.precision - 1, type.scale)
    return Between(most, None) if value > 0 else Between(None, _scaled(1 - 10**type.precision, type.scale))


def _among_integers(number: Fraction, low: int, high: int) -> At | Between:
    below = math.floor(number)
    if below < low:
        return Between(None, low)
    if number > high:
        return Between(high, None)
    return At(below) if below == number else Between(below, below + 1)


def _among_floats(number: Fraction, bits: int, rounding: bool) -> At | Between:
    nearest = values.nearest_float(number, bits)
    if Fraction(nearest) == number or (rounding and abs(number) <= Fraction(_largest(bits))):
        return At(nearest)
    if Fraction(nearest) < number:
        return Between(nearest, _next(nearest, upwards=True, bits=bits))
    return Between(_next(nearest, upwards=False, bits=bits), nearest)


def _largest(bits: int) -> float:
    return values.nearest_float(Fraction(10) ** 400, bits)


def _next(value: float, upwards: bool, bits: int) -> float:
    """Return the next float of `bits` bits above or below `value`. The result may be infinite. A zero is returned as
    0.0.

    Floats of one sign are ordered like their bits read as integers, so the next integer gives the next float.
    """
    as_float, as_integer, sign = {16: ("<e", "<H", 1 << 15), 32: ("<f", "<I", 1 << 31), 64: ("<d", "<Q", 1 << 63)}[bits]
    (code,) = struct.unpack(as_integer, struct.pack(as_float, value))
    order = (sign - code if code & sign else code) + (1 if upwards else -1)
    return float(struct.unpack(as_float, struct.pack(as_integer, sign - order if order < 0 else order))[0])


def _scaled(unscaled: object, scale: int) -> Decimal | None:
    if unscaled is None:
        return None
    with localcontext() as context:
        context.prec = values.MOST_DIGITS + 4
        return Decimal(unscaled).scaleb(-scale)  # type: ignore[arg-type]


def _count_in_seconds(literal: Literal, type: pa.DataType) -> Fraction:
    """Return the literal in seconds from the start of the column's type, e.g. 1970 or midnight. Parse text as ISO 8601.
    Raises PredicateError if the literal and the column cannot be compared."""
    kind, given = kind_of(type), kind_of(literal.type)
    zone = zone_of(type)
    if given is TypeFamily.TEXT and kind is not TypeFamily.DURATION:
        return _written(literal, type)
    if kind is given and (zone is None) == (zone_of(literal.type) is None):
        return values.exact(literal)
    if zone is None and {kind, given} == {TypeFamily.DATE, TypeFamily.TIMESTAMP} and zone_of(literal.type) is None:
        return values.exact(literal)
    if kind is TypeFamily.TIMESTAMP and given in (TypeFamily.DATE, TypeFamily.TIMESTAMP):
        with_zone = "the column has a time zone, so give an offset, e.g. TIMESTAMPTZ '2020-12-31 00:00:00+00:00'"
        without = "the column has no time zone: write e.g. TIMESTAMP '2020-12-31 00:00:00'"
        raise _incomparable(literal, type, without if zone is None else with_zone)
    raise _incomparable(literal, type)


def _written(literal: Literal, type: pa.DataType) -> Fraction:
    text = str(literal.value)
    if kind_of(type) is TypeFamily.TIME:
        return Fraction(datetime_text.nanoseconds_of_day(text), datetime_text.NANOSECONDS)
    count, has_offset = datetime_text.nanoseconds_since_1970(text)
    zone = zone_of(type)
    if has_offset != (zone is not None):
        given, needed, hint = (
            ("an offset", "no time zone", "remove the offset")
            if has_offset
            else ("no offset", "a time zone", "write e.g. '2020-12-31 00:00:00+00:00'")
        )
        raise PredicateError(f"{text[:60]!r} has {given}, but the column of type {type} has {needed}: {hint}")
    return Fraction(count, datetime_text.NANOSECONDS)


def _counted(seconds: Fraction, type: pa.DataType) -> At | Between:
    units, per = units_per_second(type)
    return _among_integers(seconds * units / per, *integer_range(type))


def _characters(literal: Literal, type: pa.DataType) -> At | Between:
    value = literal.value
    if kind_of(type) is TypeFamily.TEXT:
        return At(value if isinstance(value, str) else _decoded(value))  # type: ignore[arg-type]
    raw = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
    if not pat.is_fixed_size_binary(type) or len(raw) == type.byte_width:
        return At(raw)
    return _among_fixed(raw, type.byte_width)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise PredicateError(
            "the binary literal is not valid UTF-8, but the column is text: use a text literal"
        ) from None


def _among_fixed(raw: bytes, width: int) -> Between:
    """Return the neighbours, in byte order, of `raw` among the byte strings of length `width`."""
    if len(raw) < width:
        above = raw + b"\0" * (width - len(raw))
        return Between(_before(above), above)
    below = raw[:width]
    return Between(below, _after(below))


def _before(raw: bytes) -> bytes | None:
    number = int.from_bytes(raw, "big")
    return (number - 1).to_bytes(len(raw), "big") if number else None


def _after(raw: bytes) -> bytes | None:
    number = int.from_bytes(raw, "big") + 1
    return number.to_bytes(len(raw), "big") if number < 256 ** len(raw) else None
