"""The meaning of a filter in plain Python over single rows, without Arrow kernels: fractions, times in seconds.

It takes unbound filters, so that it tests binding and evaluation together.
"""

import math
import struct
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pat

from libraries.filters import datetime_text
from libraries.filters.tests.random_tables import python_values
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix


def truths(predicate: Predicate, table: pa.Table) -> list[bool | None]:
    """Return true, false or None for each row of a table."""
    columns = {name: python_values(table[name]) for name in table.column_names}
    types = {
        field.name: field.type.value_type if pat.is_dictionary(field.type) else field.type for field in table.schema
    }
    return [
        truth(predicate, {name: values[row] for name, values in columns.items()}, types)
        for row in range(table.num_rows)
    ]


def truth(predicate: Predicate, row: dict[str, object], types: dict[str, pa.DataType]) -> bool | None:
    match predicate:
        case Constant(value):
            return value
        case And(parts):
            found = [truth(part, row, types) for part in parts]
            return False if False in found else None if None in found else True
        case Or(parts):
            found = [truth(part, row, types) for part in parts]
            return True if True in found else None if None in found else False
        case Not(part):
            inner = truth(part, row, types)
            return None if inner is None else not inner
        case IsNull(column):
            return row[column] is None
        case Known(column, value):
            return None if row[column] is None else value
        case Comparison(operator, column, literal):
            return _compared(operator, row[column], literal, types[column])
        case In(column, literals):
            found = [_compared("==", row[column], literal, types[column]) for literal in literals]
            return True if True in found else None if None in found else False if literals else _empty(row[column])
        case Prefix(column, text):
            return _begins(row[column], text)
    raise AssertionError(predicate)


def _empty(value: object) -> bool | None:
    return None if value is None else False


def _begins(value: object, text: str) -> bool | None:
    if value is None:
        return None
    raw = value.encode() if isinstance(value, str) else value
    return raw.startswith(text.encode())  # type: ignore[attr-defined]


def _compared(operator: str, value: object, literal: Literal, type: pa.DataType) -> bool | None:
    if value is None or literal.value is None:
        return None
    left, right = _scale(value, type), _literal_on(literal, type)
    if operator == "==":
        return left == right
    if operator == "!=":
        return left != right
    if isinstance(left, float) or isinstance(right, float):
        # Fractions do not compare with infinities and NaN: replace all other numbers by 0.0, which is on the same side.
        left, right = _sided(left), _sided(right)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]  # type: ignore[operator]


def _sided(number: object) -> object:
    """Return infinities and NaN unchanged, all other numbers as 0.0, which suffices to compare with them."""
    return number if isinstance(number, float) else 0.0


def _scale(value: object, type: pa.DataType) -> object:
    """Convert a value to a form that compares exactly: fractions (seconds for times), bytes, or a non-finite float."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if isinstance(value, bool):
        return Fraction(value)
    if pat.is_date32(type):
        return Fraction(value * 86_400)  # type: ignore[operator]
    if pat.is_date64(type):
        return Fraction(value, 1_000)  # type: ignore[call-overload]
    if pat.is_time(type) or pat.is_timestamp(type) or pat.is_duration(type):
        return Fraction(value, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type.unit])  # type: ignore[call-overload]
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    return Fraction(value)  # type: ignore[call-overload]


def _literal_on(literal: Literal, type: pa.DataType) -> object:
    if isinstance(literal.value, str) and pat.is_time(type):
        return Fraction(datetime_text.nanoseconds_of_day(literal.value), 10**9)
    if isinstance(literal.value, str) and (pat.is_date(type) or pat.is_timestamp(type)):
        return Fraction(datetime_text.nanoseconds_since_1970(literal.value)[0], 10**9)
    if isinstance(literal.value, Decimal) and pat.is_floating(type):
        return _nearest(literal.value, type.bit_width)
    return _scale(literal.value, literal.type)


def _nearest(number: Decimal, bits: int) -> Fraction:
    """Return the nearest float of that width, ties to even; beyond the largest float, the number itself."""
    letter, whole = {16: ("e", "H"), 32: ("f", "I"), 64: ("d", "Q")}[bits]
    largest = {16: 65504.0, 32: 3.4028234663852886e38, 64: 1.7976931348623157e308}[bits]
    if abs(Fraction(number)) > Fraction(largest):
        return Fraction(number)
    (code,) = struct.unpack(whole, struct.pack(letter, abs(float(number))))
    around = [struct.unpack(letter, struct.pack(whole, each))[0] for each in (max(code - 1, 0), code, code + 1)]
    codes = dict(zip(around, (max(code - 1, 0), code, code + 1), strict=True))
    finite = [each for each in codes if math.isfinite(each)]
    size = abs(Fraction(number))
    nearest = min(finite, key=lambda each: (abs(Fraction(each) - size), codes[each] % 2))
    return Fraction(nearest) if number > 0 else -Fraction(nearest)
