"""Random filters for a table: literals of every type that compares with a column's, equal or close to its values."""

import datetime
import math
import random
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pat

from libraries.filters.tests.random_tables import python_values, value
from libraries.filters.tree import (
    OPERATORS,
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Known,
    Literal,
    Not,
    Or,
    Predicate,
    Prefix,
)

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def predicate(rng: random.Random, table: pa.Table, depth: int = 3) -> Predicate:
    """Return a filter over the table's columns, at most `depth` levels above its leaves."""
    kind = rng.random()
    if depth == 0 or kind < 0.45:
        return leaf(rng, table)
    if kind < 0.6:
        return Not(predicate(rng, table, depth - 1))
    parts = tuple(predicate(rng, table, depth - 1) for _ in range(rng.choice((0, 1, 2, 2, 2, 3))))
    return And(parts) if kind < 0.8 else Or(parts)


def leaf(rng: random.Random, table: pa.Table) -> Predicate:
    name = rng.choice(table.column_names)
    type = table.schema.field(name).type
    kind = rng.random()
    if kind < 0.03:
        return Constant(rng.choice((True, False, None)))
    if kind < 0.15:
        return IsNull(name)
    if kind < 0.2:
        return Known(name, rng.random() < 0.5)
    if kind < 0.35:
        return In(name, tuple(literal(rng, table, name) for _ in range(rng.choice((0, 1, 2, 4)))))
    if kind < 0.45 and _is_characters(type):
        found = value(pa.string(), rng)
        return Prefix(name, str(found)[: rng.randint(0, 3)])
    return Comparison(rng.choice(OPERATORS), name, literal(rng, table, name))


def literal(rng: random.Random, table: pa.Table, name: str) -> Literal:
    """Return a literal that compares with the column: close to a value of it, often of another type."""
    type = table.schema.field(name).type
    type = type.value_type if pat.is_dictionary(type) else type
    present = [each for each in python_values(table[name].slice(0, 8)) if each is not None]
    if rng.random() < 0.05:
        return Literal(None, rng.choice((type, pa.null())))
    if pat.is_null(type):
        return Literal(5, pa.int64())
    near = rng.choice(present) if present and rng.random() < 0.8 else value(type, rng)
    if pat.is_boolean(type) or rng.random() < 0.2:
        return Literal(near, type)
    if pat.is_integer(type) or pat.is_floating(type) or pat.is_decimal(type):
        return _number(rng, near)
    if _is_characters(type):
        return _characters(rng, near, type)
    return _moment(rng, Fraction(near * (86_400 if pat.is_date32(type) else 1), _units(type)), type)


def _is_characters(type: pa.DataType) -> bool:
    type = type.value_type if pat.is_dictionary(type) else type
    return not (pat.is_null(type) or pat.is_boolean(type) or pat.is_decimal(type) or _is_short(type))


def _is_short(type: pa.DataType) -> bool:
    return pat.is_integer(type) or pat.is_floating(type) or pat.is_temporal(type)


def _units(type: pa.DataType) -> int:
    if pat.is_date(type):
        return 1_000 if pat.is_date64(type) else 1
    return UNITS[type.unit]


def _number(rng: random.Random, near: object) -> Literal:
    if isinstance(near, float) and not math.isfinite(near):
        return Literal(near, rng.choice((pa.float32(), pa.float64())))
    number = Fraction(near) + rng.choice((0, 0, 0, 1, -1, Fraction(1, 2), Fraction(-1, 10), Fraction(1, 2**40)))
    kind = rng.random()
    if kind < 0.4:
        return _whole(rng, math.floor(number))
    if kind < 0.7:
        return Literal(float(number), pa.float64())
    scale = rng.randint(0, 25)
    unscaled = round(number * 10**scale)
    if abs(unscaled) >= 10**70:
        return Literal(float(number), pa.float64())
    return Literal(Decimal(f"{unscaled}E-{scale}"), pa.decimal256(76, scale))


def _whole(rng: random.Random, number: int) -> Literal:
    types = [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
    fitting = [type for type in types if _low(type) <= number < _low(type) + 2**type.bit_width]
    if fitting:
        return Literal(number, rng.choice(fitting))
    return Literal(float(number), pa.float64())


def _low(type: pa.DataType) -> int:
    return 0 if pat.is_unsigned_integer(type) else -(2 ** (type.bit_width - 1))


def _characters(rng: random.Random, near: object, type: pa.DataType) -> Literal:
    raw = near.encode() if isinstance(near, str) else bytes(near)  # type: ignore[call-overload]
    raw = rng.choice((raw, raw + b"a", raw[:-1], raw + b"\0"))
    is_text = pat.is_string(type) or pat.is_large_string(type) or pat.is_string_view(type)
    text = raw.decode(errors="ignore")
    if is_text or rng.random() < 0.3:
        return Literal(text, rng.choice((pa.string(), pa.large_string(), pa.string_view())))
    return Literal(raw, rng.choice((pa.binary(), pa.large_binary())))


def _moment(rng: random.Random, near: Fraction, type: pa.DataType) -> Literal:
    seconds = near + rng.choice((0, 0, 1, -1, Fraction(1, 2), Fraction(1, 10**9), 43_200))
    if pat.is_time(type):
        return _count(seconds % 86_400, rng.choice((pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))))
    if pat.is_duration(type):
        return _count(seconds, pa.duration(rng.choice(tuple(UNITS))))
    zone = type.tz if pat.is_timestamp(type) else None
    if rng.random() < 0.2 and abs(seconds) < 2**34:
        return Literal(_written(rng, seconds, zone), pa.string())
    if zone is None and rng.random() < 0.3:
        return _count(seconds / 86_400, pa.date32()) if rng.random() < 0.5 else _count(seconds, pa.date64())
    return _count(seconds, pa.timestamp(rng.choice(tuple(UNITS)), None if zone is None else "Asia/Tokyo"))


def _count(seconds: Fraction, type: pa.DataType) -> Literal:
    """Return the nearest count of the type, or its limit beyond the range; for date32 the seconds are days."""
    units = _units(type)
    low = -(2 ** (type.bit_width - 1))
    return Literal(min(max(math.floor(seconds * units), low), -low - 1), type)


def _written(rng: random.Random, seconds: Fraction, zone: str | None) -> str:
    nanoseconds = math.floor(seconds * 10**9)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=nanoseconds // 10**9)
    fraction = f".{nanoseconds % 10**9:09}" if nanoseconds % 10**9 else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}" + ("" if zone is None else rng.choice(("Z", "+00:00", "-00")))
