"""Parse constants in SQL into typed literals: numbers, text, booleans, NULL, dates and times.

As in DuckDB, a number with a point or an exponent is a decimal; on float columns it means the nearest float.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from libraries.filters import datetime_text
from libraries.filters.kinds import integer_range
from libraries.filters.tree import Literal
from libraries.filters.values import MOST_DIGITS, literal
from libraries.near_storage.errors import PredicateError

_NUMBER = re.compile(r"(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?", re.ASCII)


def literal_of(node: exp.Expression) -> Literal | None:
    """Return the literal that an expression represents, or None if it is not a literal. Raises PredicateError for an
    invalid literal."""
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        if isinstance(node, exp.Neg):
            sign = -sign
        if not isinstance(node.this, exp.Paren | exp.Neg) and sign < 0 and not _is_number(node.this):
            return None
        node = node.this
    if isinstance(node, exp.Null):
        return literal(None)
    if isinstance(node, exp.Boolean):
        return literal(bool(node.this))
    if _is_number(node):
        return _number(node.this, sign)
    if isinstance(node, exp.Literal):
        return literal(node.this)
    return _typed_text(node) if type(node) is exp.Cast else None


def _is_number(node: object) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _number(text: str, sign: int) -> Literal:
    found = _NUMBER.fullmatch(text)
    digits = (found[1] + (found[2] or "")).lstrip("0") if found else ""
    if found is None or not (found[1] or found[2]) or len(digits) > MOST_DIGITS:
        raise PredicateError(
            f"cannot parse the number {text[:60]}: write at most {MOST_DIGITS} digits, and at most 4 in the exponent"
        )
    if found[2] is None and found[3] is None:
        return literal(sign * int(text))
    # Arithmetic, even negation, would round to the 28 digits of Python's context.
    number = Decimal(text) if sign > 0 else Decimal(text).copy_negate()
    if -MOST_DIGITS <= number.adjusted() < MOST_DIGITS and -_exponent(number) <= MOST_DIGITS:
        return literal(number)
    as_float = float(number)
    if math.isinf(as_float) or (as_float == 0 and digits):
        raise PredicateError(
            f"the number {text[:60]} is outside the range of a double: use 0, or a number from 1e-323 to 1.7e308"
        )
    return literal(as_float)


def _exponent(number: Decimal) -> int:
    return int(number.as_tuple().exponent)


def _date(text: str) -> Literal:
    return Literal(datetime_text.days_of(text), pa.date32())


def _time(text: str) -> Literal:
    return Literal(datetime_text.nanoseconds_of_day(text), pa.time64("ns"))


def _timestamp(text: str) -> Literal:
    nanoseconds, has_offset = datetime_text.nanoseconds_since_1970(text)
    if has_offset:
        raise PredicateError(f"TIMESTAMP {text[:60]!r} has an offset: write TIMESTAMPTZ, or remove the offset")
    return _finest(nanoseconds, None)


def _timestamp_with_zone(text: str) -> Literal:
    nanoseconds, has_offset = datetime_text.nanoseconds_since_1970(text)
    if not has_offset:
        raise PredicateError(f"TIMESTAMPTZ {text[:60]!r} has no offset: write e.g. '2020-12-31 00:00:00+00:00'")
    return _finest(nanoseconds, "UTC")


def _finest(nanoseconds: int, zone: str | None) -> Literal:
    """Return a timestamp in microseconds if they represent it exactly, else in nanoseconds."""
    if nanoseconds % 1_000 == 0:
        return Literal(nanoseconds // 1_000, pa.timestamp("us", zone))
    low, high = integer_range(pa.int64())
    if not low <= nanoseconds <= high:
        raise PredicateError("timestamps with nanoseconds must be between 1677 and 2262: round to microseconds")
    return Literal(nanoseconds, pa.timestamp("ns", zone))


def _double(text: str) -> Literal:
    try:
        return literal(float(text.strip().removeprefix("+")))
    except ValueError:
        raise PredicateError(f"{text[:60]!r} is not a double: write a number, 'NaN' or 'Infinity'") from None


_READERS: dict[object, Callable[[str], Literal]] = {
    exp.DataType.Type.DATE: _date,
    exp.DataType.Type.TIME: _time,
    exp.DataType.Type.TIMESTAMP: _timestamp,
    exp.DataType.Type.TIMESTAMPNTZ: _timestamp,
    exp.DataType.Type.TIMESTAMP_NS: _timestamp,
    exp.DataType.Type.TIMESTAMPTZ: _timestamp_with_zone,
    exp.DataType.Type.DOUBLE: _double,
}


def _typed_text(node: exp.Cast) -> Literal | None:
    """Parse `DATE '...'` and similar, `CAST('...' AS DATE)`, `'...'::date`."""
    target = node.args["to"].this if isinstance(node.args["to"], exp.DataType) else None
    reader = _READERS.get(target)
    given = node.this
    if reader is None or not isinstance(given, exp.Literal) or not given.is_string:
        return None
    if any(value for name, value in node.args.items() if name not in ("this", "to")):
        return None
    return reader(given.this)
