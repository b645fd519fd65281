"""`kinds`: two small tables for each kind of column that users have, one without and one with nulls.

The tables show which kinds of column a format changes. They are not used for measuring time. Each kind has a single
difficulty for formats, so that reports can name the kind instead of describing what was changed. Kinds of all-null
columns have only the table with nulls.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 20


@dataclass(frozen=True)
class ColumnKind:
    """A kind of column: its Arrow type and a few values, which are repeated until the column is full.

    For categorical columns, `categories` has the categories in order. Without `categories`, the categories are in the
    order in which they first occur.
    """

    name: str
    title: str
    type: pa.DataType
    values: Sequence[Any]
    categories: Sequence[Any] | None = None

    @property
    def nulls(self) -> tuple[bool, ...]:
        """Return, for each table of this kind, whether the table has nulls. A kind without values has only the table
        with nulls."""
        return (True,) if all(value is None for value in self.values) else (False, True)

    def table(self, nulls: bool) -> pa.Table:
        """Return a table with the columns `key` (int64, 0 to ROWS - 1) and `value`.

        With `nulls`, the second row and every seventh row after it are null. Every value of the kind still occurs in
        another row.
        """
        values = list(itertools.islice(itertools.cycle(self.values), ROWS))
        if nulls:
            values = [None if row % 7 == 1 else value for row, value in enumerate(values)]
        return pa.table({"key": pa.array(range(ROWS), pa.int64()), "value": self._array(values)})

    def _array(self, values: list[Any]) -> pa.Array:
        if self.categories is None:
            return pa.array(values, self.type)
        codes = [None if value is None else self.categories.index(value) for value in values]
        indices, dictionary = pa.array(codes, self.type.index_type), pa.array(self.categories, self.type.value_type)
        return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=self.type.ordered)


def _integers(arrow_type: pa.DataType) -> ColumnKind:
    bits, signed = arrow_type.bit_width, pa.types.is_signed_integer(arrow_type)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    title = f"{'signed' if signed else 'unsigned'} integer of {bits} bits, with its smallest and largest"
    return ColumnKind(str(arrow_type), title, arrow_type, [low, 1, 2, high, 100])


_MOMENTS = [
    dt.datetime(2024, 2, 29, 12, 34, 56),
    dt.datetime(1969, 12, 31, 23, 59, 58),
    dt.datetime(2000, 1, 1),
    dt.datetime(2038, 1, 19, 3, 14, 8),
    dt.datetime(1999, 7, 4, 23, 5, 9),
]

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _timestamps(unit: str, zone: str | None) -> ColumnKind:
    """Return a kind of timestamps at fixed times. Their fractions of a second use the last digit of the unit."""
    since_epoch = [int((moment - dt.datetime(1970, 1, 1)).total_seconds()) for moment in _MOMENTS]
    fraction = 123_456_789 * _UNITS[unit] // 10**9
    name = f"timestamp-{unit}" + ("-zone" if zone else "")
    title = f"point in time in {unit}" + (f" with the zone {zone}" if zone else " without zone")
    return ColumnKind(
        name, title, pa.timestamp(unit, zone), [second * _UNITS[unit] + fraction for second in since_epoch]
    )


def _text(name: str, title: str, *values: str) -> ColumnKind:
    return ColumnKind(name, title, pa.string(), values)


def _vectors(name: str, title: str, size: int) -> ColumnKind:
    values = [[(-1) ** row * (row + 1) / (place + 3) for place in range(size)] for row in range(3)]
    return ColumnKind(name, title, pa.list_(pa.float32(), size), values)


def _without_values(name: str, arrow_type: pa.DataType) -> ColumnKind:
    return ColumnKind(f"{name}-null", f"{name} of which every value is missing", arrow_type, [None])


_ALL = [
    *map(_integers, (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *map(_integers, (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    ColumnKind("int64-exact", "integers that float64 cannot hold (2^53 + 1)", pa.int64(), [2**53 + 1, 1, -(2**53) - 1]),
    ColumnKind("float16", "float of 16 bits", pa.float16(), [0.1, -2.5, 65_504.0, 6e-8, 100.25]),
    ColumnKind("float32", "float of 32 bits", pa.float32(), [0.1, -2.5, 3.4028234663852886e38, 1e-10, 100.0]),
    ColumnKind(
        "float64", "float of 64 bits, all digits used", pa.float64(), [0.1, 1 / 3, -2.5, 1.2345678901234567, 99.5]
    ),
    ColumnKind(
        "float64-range", "floats near both ends of the range", pa.float64(), [1.7e308, -1e300, 1e-300, 1.5, 2e22]
    ),
    ColumnKind("float64-whole", "floats without fractions", pa.float64(), [17.0, 1.0, -2.0, 100.0]),
    ColumnKind("float64-nan", "floats, some not a number", pa.float64(), [float("nan"), 0.5, 1.5]),
    ColumnKind("float64-infinite", "floats, some infinite", pa.float64(), [float("inf"), 0.5, float("-inf")]),
    ColumnKind("float64-zero", "floats with zeros of both signs", pa.float64(), [-0.0, 0.5, 0.0]),
    ColumnKind("float64-subnormal", "floats with subnormals", pa.float64(), [5e-324, 0.5, -1e-310]),
    ColumnKind("bool", "booleans", pa.bool_(), [True, False, False]),
    _text("string", "plain text", "apple", "pear tree", "fig", "x"),
    _text("string-empty", "text, some of it empty", "", "apple", "pear"),
    _text("string-missing", "text that reads like a missing value", "NA", "null", "None", "nan", "apple"),
    _text("string-digits", "text of digits, as in a postcode", "007", "0815", "12345"),
    _text("string-numbers", "text that reads like whole numbers", "7", "815", "12345"),
    _text("string-formula", "text that reads like a formula", "=1+1", "apple", "@x", "+1-2"),
    _text("string-long", "text longer than a spreadsheet's cell", "ab" * 20_000, "apple", "c" * 300),
    _text("string-unicode", "text beyond Latin", "žluťoučký kůň", "日本語", "😀", "مرحبا", "é"),
    _text(
        "string-quoting",
        "quotes, commas and newlines",
        'say "no"',
        "a,b",
        "two\nlines",
        "a\tb",
        "<a>&amp;</a>",
        "apple",
    ),
    _text("string-return", "text with carriage returns", "two\r\nlines", "one\rtwo", "apple"),
    ColumnKind("binary", "bytes", pa.binary(), [b"abc", b"\x00\xff\xfe", b"x", b"a,b"]),
    ColumnKind("date", "days", pa.date32(), [dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(2000, 1, 1)]),
    ColumnKind(
        "date-early", "days before 1677", pa.date32(), [dt.date(1492, 10, 12), dt.date(1, 1, 1), dt.date(2000, 1, 1)]
    ),
    ColumnKind(
        "time", "times of day in us", pa.time64("us"), [dt.time(12, 34, 56, 123456), dt.time(0, 0), dt.time(23, 59, 59)]
    ),
    *(_timestamps(unit, None) for unit in _UNITS),
    *(_timestamps(unit, "Europe/Prague") for unit in _UNITS),
    ColumnKind("duration", "spans of time in us", pa.duration("us"), [1, -1, 86_400_000_000, 123_456_789]),
    ColumnKind(
        "decimal",
        "decimals with two places",
        pa.decimal128(12, 2),
        [Decimal("0.10"), Decimal("-12345.67"), Decimal("7.00")],
    ),
    ColumnKind(
        "categorical", "text in a dictionary", pa.dictionary(pa.int32(), pa.string()), ["red", "green", "red", "blue"]
    ),
    ColumnKind(
        "categorical-ordered",
        "text in a dictionary with a given order, one entry in no row",
        pa.dictionary(pa.int32(), pa.string(), ordered=True),
        ["mid", "low", "mid", "high"],
        categories=["off", "low", "mid", "high"],
    ),
    ColumnKind("categorical-int64", "integers in a dictionary", pa.dictionary(pa.int32(), pa.int64()), [30, -1, 30, 2]),
    ColumnKind(
        "categorical-float64",
        "floats in a dictionary",
        pa.dictionary(pa.int32(), pa.float64()),
        [0.5, 1 / 3, 0.5, 1.2345678901234567],
    ),
    ColumnKind("list", "lists of integers", pa.list_(pa.int64()), [[1, 2], [], [3], [4, 5, 6]]),
    _vectors("vector", "vectors: lists of 4 floats each", 4),
    _vectors("vector-long", "vectors of more floats than numpy prints", 1_024),
    ColumnKind(
        "struct", "structs", pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    ),
    ColumnKind(
        "map", "maps from text to integers", pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], [("a", 2), ("b", 3)]]
    ),
    # Columns with nulls only. pandas, and readers that infer types, represent such a column in different ways, and
    # there is one kind for each way: text, masked arrays, floats, timestamps, objects (here dates), category codes.
    _without_values("string", pa.string()),
    _without_values("int64", pa.int64()),
    _without_values("bool", pa.bool_()),
    _without_values("float64", pa.float64()),
    _without_values("timestamp-us", pa.timestamp("us")),
    _without_values("date", pa.date32()),
    _without_values("categorical", pa.dictionary(pa.int32(), pa.string())),
]

KINDS: Mapping[str, ColumnKind] = {kind.name: kind for kind in _ALL}
"""All kinds, by name, in the order in which they are shown."""
