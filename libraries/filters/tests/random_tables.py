"""Random columns and tables with values that break comparisons: extremes, neighbours, nulls, NaN, -0.0.

All randomness comes from a `random.Random` (or hypothesis' own), so that a seed identifies a table.
"""

import random
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pat

COUNTS = (0, 1, -1, 5, 86_399, 86_400, 1_600_000_000, 1_600_000_000_123_456, 253_402_300_799)
TEXTS = ("", "a", "ab", "abc", "b", "ä", "€uro", "zz", "\U0001f600", "a\0", "A", "a%b", "x" * 12, "1970-01-02")

TYPES: tuple[pa.DataType, ...] = (
    pa.bool_(),
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal32(5, 2),
    pa.decimal64(15, 0),
    pa.decimal128(10, 2),
    pa.decimal128(38, 10),
    pa.decimal128(5, -2),
    pa.decimal256(60, 20),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(2),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Berlin"),
    pa.duration("ms"),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.int64()),
    pa.null(),
)
"""All types that filters compare, one of each kind and width."""

PARQUET_TYPES = tuple(
    type
    for type in TYPES
    if type not in (pa.date64(), pa.null()) and not (pat.is_decimal(type) and (type.scale < 0 or type.bit_width < 128))
)
"""The types that a Parquet file of pyarrow preserves."""


def value(type: pa.DataType, rng: random.Random) -> object:
    """Return one value as in `Literal.value`, never null."""
    if pat.is_dictionary(type):
        return value(type.value_type, rng)
    if pat.is_boolean(type):
        return rng.random() < 0.5
    if pat.is_integer(type):
        return _integer(rng, *_range(type))
    if pat.is_floating(type):
        return _float(rng, type)
    if pat.is_decimal(type):
        return _decimal(rng, type)
    if pat.is_date(type) or pat.is_time(type) or pat.is_timestamp(type) or pat.is_duration(type):
        return _count(rng, type)
    text = rng.choice(TEXTS) + rng.choice(("", "", "q"))
    if pat.is_fixed_size_binary(type):
        return bytes(rng.choice((0, 1, 97, 98, 255)) for _ in range(type.byte_width))
    if pat.is_string(type) or pat.is_large_string(type) or pat.is_string_view(type):
        return text
    return rng.choice((text.encode(), b"\xff\x00", b"\xfe"))


def column(type: pa.DataType, rng: random.Random, rows: int) -> pa.ChunkedArray:
    """Return a column of few distinct values and some nulls, in one or more chunks with odd offsets."""
    if pat.is_null(type):
        return pa.chunked_array([pa.nulls(rows)])
    pool = [value(type, rng) for _ in range(rng.randint(1, 6))]
    nulls = rng.choice((0.0, 0.2, 1.0))
    values = [None if rng.random() < nulls else rng.choice(pool) for _ in range(rows)]
    cuts = sorted(rng.randint(0, rows) for _ in range(rng.choice((0, 0, 2))))
    pieces = [values[start:end] for start, end in zip([0, *cuts], [*cuts, rows], strict=True)]
    return pa.chunked_array([_shifted(array(piece, type), type) for piece in pieces], type)


def array(values: Sequence[object], type: pa.DataType) -> pa.Array:
    """Return an array of a type from values as in `Literal.value`."""
    if pat.is_dictionary(type):
        encoded = array(values, type.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(type.index_type), encoded.dictionary)
    if pat.is_date(type) or pat.is_time(type) or pat.is_timestamp(type) or pat.is_duration(type):
        return pa.array(values, pa.int32() if type.bit_width == 32 else pa.int64()).view(type)
    if pat.is_decimal(type) and type.bit_width < 128:
        return pa.array(values, pa.decimal128(type.precision, type.scale)).cast(type)
    return pa.array(values, type)


def table(rng: random.Random, types: Sequence[pa.DataType], rows: int) -> pa.Table:
    """Return a table with a column of each type, named `c0`, `c.1`, ...: every second name has a dot."""
    names = [f"c.{index}" if index % 2 else f"c{index}" for index in range(len(types))]
    return pa.table([column(type, rng, rows) for type in types], names=names)


def python_values(column: pa.ChunkedArray) -> list[object]:
    """Return the column's values as in `Literal.value`, None for null."""
    return [each for chunk in column.chunks for each in _chunk_values(chunk)]


def _chunk_values(chunk: pa.Array) -> list[object]:
    type = chunk.type
    if pat.is_dictionary(type):
        values = _chunk_values(chunk.dictionary)
        return [None if index is None else values[index] for index in chunk.indices.to_pylist()]
    if pat.is_date(type) or pat.is_time(type) or pat.is_timestamp(type) or pat.is_duration(type):
        return chunk.view(pa.int32() if type.bit_width == 32 else pa.int64()).to_pylist()
    return [float(each) if pat.is_floating(type) and each is not None else each for each in chunk.to_pylist()]


def _shifted(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Return the same array after another first value, so that its offset is 1."""
    return array if pat.is_dictionary(type) else pa.concat_arrays([array.slice(0, 1), array]).slice(min(len(array), 1))


def _range(type: pa.DataType) -> tuple[int, int]:
    bits = type.bit_width
    return (0, 2**bits - 1) if pat.is_unsigned_integer(type) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _integer(rng: random.Random, low: int, high: int) -> int:
    near = rng.choice((0, 0, low, high, 2**53, -(2**53), 2**24))
    return min(max(near + rng.randint(-3, 3), low), high)


def _float(rng: random.Random, type: pa.DataType) -> float:
    chosen = rng.choice(
        (0.0, -0.0, 0.1, -0.1, 1.5, 2.0**24, 2.0**53, float("nan"), float("inf"), -float("inf"), 1e-45, 1e308)
    )
    drawn = chosen if rng.random() < 0.7 else rng.uniform(-10, 10)
    return float(pa.array([drawn]).cast(type, safe=False)[0].as_py())


def _decimal(rng: random.Random, type: pa.DataType) -> Decimal:
    most = 10**type.precision - 1
    unscaled = _integer(rng, -most, most) if rng.random() < 0.7 else rng.randint(-most, most)
    return Decimal(f"{unscaled}E{-type.scale}")


def _count(rng: random.Random, type: pa.DataType) -> int:
    if pat.is_time(type):
        units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type.unit]
        return rng.choice((0, 1, units, 3_600 * units, 86_399 * units, 86_400 * units - 1))
    low, high = (-(2 ** (type.bit_width - 1)), 2 ** (type.bit_width - 1) - 1)
    if pat.is_date64(type):
        return 86_400_000 * rng.randint(-3, 20_000)
    return min(max(rng.choice((*COUNTS, low, high)) + rng.randint(-2, 2), low), high)
