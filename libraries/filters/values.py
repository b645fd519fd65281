"""Make and check literals. The Python type of `Literal.value` depends on the Arrow type:

    bool                                 bool
    string, large_string, string_view    str, valid UTF-8
    integers of all widths               int
    binary of all kinds                  bytes
    float16, float32, float64            float, exactly a value of that width
    decimals                             decimal.Decimal, exactly a value of that precision and scale
    dates, timestamps                    int, the count in the type's unit from 1970 (in UTC if there is a zone)
    times, durations                     int, the count in the type's unit
    null of any type                     None

`checked` tests that a value follows these rules.
"""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pat

from libraries.filters.errors import PredicateError
from libraries.filters.kinds import COUNTED, TypeFamily, integer_range, kind_of, units_per_second
from libraries.filters.tree import Literal

MOST_DIGITS = 76
"""Digits of Arrow's widest decimal."""

_FLOAT_FORMATS = {16: "<e", 32: "<f", 64: "<d"}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def literal(value: object) -> Literal:
    """Make a literal with the Arrow type that fits a Python value. Arrow scalars keep their type.

    An int becomes int64, or uint64 or a decimal if the int is too large for int64. A Decimal becomes a decimal with the
    value's digits. A datetime becomes a timestamp in microseconds, with zone UTC if the datetime has a time zone. A
    date becomes date32, a time becomes time64 in microseconds, a timedelta becomes a duration in microseconds. Raises
    PredicateError for other values.
    """
    match value:
        case None:
            return Literal(None, pa.null())
        case pa.Scalar():
            return from_scalar(value)
        case bool():
            return Literal(value, pa.bool_())
        case int():
            return _integer(value)
        case float():
            return Literal(value, pa.float64())
        case Decimal():
            return decimal_literal(value)
        case str():
            return checked(Literal(value, pa.string()))
        case bytes():
            return Literal(value, pa.binary())
        case datetime.datetime():
            return _moment(value)
        case datetime.date():
            return Literal(value.toordinal() - _EPOCH.toordinal(), pa.date32())
        case datetime.time() if value.tzinfo is None:
            since = datetime.datetime.combine(_EPOCH.date(), value) - _EPOCH
            return Literal(since // _MICROSECOND, pa.time64("us"))
        case datetime.timedelta():
            return checked(Literal(value // _MICROSECOND, pa.duration("us")))
    raise PredicateError(
        f"literals of type {type(value).__name__} are not supported: use a number, text, bytes, a date, a datetime, "
        "or a time of day without time zone"
    )


def from_scalar(scalar: pa.Scalar) -> Literal:
    """Make a literal from an Arrow scalar. A dictionary scalar gives the value that it refers to. Raises PredicateError
    for types without an order."""
    if pat.is_dictionary(scalar.type):
        return from_scalar(scalar.value)
    kind = kind_of(scalar.type)
    if kind is None:
        raise PredicateError(
            f"literals of type {scalar.type} cannot be compared: filter columns of this type on the client"
        )
    if not scalar.is_valid:
        return Literal(None, scalar.type)
    value = scalar.value if kind in COUNTED else scalar.as_py()
    return checked(Literal(float(value) if kind is TypeFamily.FLOAT else value, scalar.type))


def decimal_literal(value: Decimal) -> Literal:
    """Make a decimal literal: decimal128 for up to 38 digits, decimal256 for up to 76 digits.

    Raises PredicateError if the value has more digits or is not finite.
    """
    digits, scale = _digits_and_scale(value)
    if digits > MOST_DIGITS:
        raise PredicateError(
            f"the number {_shown(value)} has {digits} digits, at most {MOST_DIGITS} are supported: use fewer"
        )
    return Literal(value, pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale))


def checked(literal: Literal) -> Literal:
    """Return the literal if its value fits its type. Raises PredicateError."""
    if literal.value is not None and not _fits(literal):
        raise PredicateError(f"{_shown(literal.value)} does not fit the type {literal.type}: give a value that does")
    return literal


def is_nan(literal: Literal) -> bool:
    """Return whether the literal is a NaN float."""
    return isinstance(literal.value, float) and math.isnan(literal.value)


def exact(literal: Literal) -> Fraction:
    """Return the literal as a number; dates and times in seconds. The literal must not be text, bytes, null, NaN or
    infinite."""
    if kind_of(literal.type) in COUNTED:
        units, seconds = units_per_second(literal.type)
        return Fraction(literal.value * seconds, units)  # type: ignore[operator]
    return Fraction(literal.value)  # type: ignore[call-overload]


def nearest_float(number: Fraction, bits: int) -> float:
    """Return the float of 16, 32 or 64 bits nearest to a number (ties to even), at most the largest finite float.

    Correct for all inputs, because the number is rounded once, with integers.
    """
    precision, lowest, largest = {16: (11, -24, 65504.0), 32: (24, -149, 3.4028234663852886e38)}.get(
        bits, (53, -1074, 1.7976931348623157e308)
    )
    if abs(number) >= Fraction(largest):
        return largest if number > 0 else -largest
    if number == 0:
        return 0.0
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    step = max(exponent - precision + 1, lowest)
    rounded = math.ldexp(round(number / Fraction(2) ** step), step)
    return min(max(rounded, -largest), largest)


def _integer(value: int) -> Literal:
    for type in (pa.int64(), pa.uint64()):
        low, high = integer_range(type)
        if low <= value <= high:
            return Literal(value, type)
    return decimal_literal(Decimal(value))


def _moment(value: datetime.datetime) -> Literal:
    if value.tzinfo is None:
        return Literal((value - _EPOCH) // _MICROSECOND, pa.timestamp("us"))
    since = value - _EPOCH.replace(tzinfo=datetime.UTC)
    return Literal(since // _MICROSECOND, pa.timestamp("us", "UTC"))


def _digits_and_scale(value: Decimal) -> tuple[int, int]:
    """Return the number of digits and the non-negative scale of a decimal, without expanding values such as 1e99999."""
    if not value.is_finite():
        raise PredicateError(f"{value} is not a decimal number: give NaN and infinities as floats")
    parts = value.as_tuple()
    exponent = int(parts.exponent)
    scale = max(-exponent, 0)
    return max(len(parts.digits) + max(exponent, 0), scale, 1), scale


def _fits(literal: Literal) -> bool:
    value, type = literal.value, literal.type
    match kind_of(type):
        case TypeFamily.BOOL:
            return isinstance(value, bool)
        case TypeFamily.INTEGER | TypeFamily.DATE | TypeFamily.TIME | TypeFamily.TIMESTAMP | TypeFamily.DURATION:
            return _is_integer(value) and integer_range(type)[0] <= value <= integer_range(type)[1]  # type: ignore[operator]
        case TypeFamily.FLOAT:
            return isinstance(value, float) and _is_float_of(value, type.bit_width)
        case TypeFamily.DECIMAL:
            return isinstance(value, Decimal) and _is_decimal_of(value, type)
        case TypeFamily.TEXT:
            return isinstance(value, str) and is_utf8(value)
        case TypeFamily.BINARY:
            right_length = not pat.is_fixed_size_binary(type) or (
                isinstance(value, bytes) and len(value) == type.byte_width
            )
            return isinstance(value, bytes) and right_length
    return False


def is_utf8(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8. Texts with unpaired surrogates cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text) if not text.isascii() else True


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_float_of(value: float, bits: int) -> bool:
    if not math.isfinite(value):
        return True
    try:
        return struct.unpack(_FLOAT_FORMATS[bits], struct.pack(_FLOAT_FORMATS[bits], value))[0] == value
    except OverflowError:
        return False


def _is_decimal_of(value: Decimal, type: pa.DataType) -> bool:
    if not value.is_finite() or _digits_and_scale(value)[0] > 10 * MOST_DIGITS:
        return False
    unscaled = Fraction(value) * Fraction(10) ** type.scale
    return unscaled.denominator == 1 and abs(unscaled.numerator) < 10**type.precision


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, Decimal) else str(value)
    return text if len(text) <= 60 else text[:60] + "..."
