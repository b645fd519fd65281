"""Convert a text column to the type that the user names with `columns`.

The user has stated the type, so more spellings are accepted than when types are detected. If a value does not fit the
type, the import is refused. No value is left out or changed.
"""

from __future__ import annotations

import datetime
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from data_generator.imported.read_options import ReadOptions, decimal_digits
from data_generator.imported.refusal import Refused, printable
from data_generator.imported.tables.text_types import timestamps
from data_generator.imported.tables.text_types.distinct_texts import MISSING, DistinctTexts
from data_generator.imported.tables.text_types.inference import Column

_CURRENCIES = "".join(sign for sign in map(chr, range(0x24, 0xFFFF)) if unicodedata.category(sign) == "Sc")
_UNIT = rf"(?:[A-Z]{{3}}|[A-Z]{{0,2}}[{re.escape(_CURRENCIES)}]|Kč|kr\.?|zł|Ft|lei|%)"
_AMOUNT = re.compile(
    rf"(?P<before>[-+(]?)\s*{_UNIT}?\s*(?P<sign>[-+]?)"
    r"(?P<digits>[0-9.][0-9.,'’\u00a0\u202f ]*(?:[eE][+-]?[0-9]+)?)"
    rf"\s*{_UNIT}?\s*(?P<after>[-)]?)"
)
_SEPARATORS = {".": ",'’\u00a0\u202f ", ",": ".'’\u00a0\u202f "}
"""Decimal point -> characters that are allowed between groups of three digits."""
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "1"}), frozenset({"false", "f", "no", "n", "0"})
_WHOLE: dict[str, tuple[pa.DataType, int, int]] = {
    "int64": (pa.int64(), -(1 << 63), (1 << 63) - 1),
    "uint64": (pa.uint64(), 0, (1 << 64) - 1),
}
_EXACT = Context(prec=2000)


class NotOfType(Exception):
    """Raised for a value that does not fit the type. `place` is the row in the sample, and `value` is the text."""

    def __init__(self, place: int, value: str) -> None:
        """`place` is the row in the sample, counted from 0."""
        super().__init__(value)
        self.place, self.value = place, value


def check_columns(wanted: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise Refused if the user named a column (key of `wanted`) that the table does not have."""
    for name in wanted:
        if name not in names:
            few = ", ".join(names[:12]) + (", .." if len(names) > 12 else "")
            raise Refused(f"has no column {name!r}, which is given in `columns`", f"Its columns are {few}.")


def not_taken(name: str, kind: str, unfit: NotOfType, where: str) -> Refused:
    """Return the error for a value that does not fit the type that the user named. `where` is the position of the
    value."""
    return Refused(
        f"column {name!r} holds {printable(unfit.value)[:60]!r}, which does not fit `columns={ {name: kind}!r}`",
        "Name another type, or repair the value.",
        where,
    )


def converted(texts: pa.ChunkedArray, kind: str, options: ReadOptions) -> Column:
    """Return the column converted to `kind`, which is one of data_generator.imported.read_options.TYPES.

    Raises NotOfType for a value that does not fit.
    """
    distinct = DistinctTexts(texts, ("",) if kind in ("text", "category") else MISSING)
    return Column(distinct.spread(_values(distinct, kind, options)), (), distinct.missing)


def _values(distinct: DistinctTexts, kind: str, options: ReadOptions) -> pa.Array:
    if kind == "text":
        return distinct.values
    if kind == "category":
        return distinct.values.dictionary_encode()
    if kind in ("date", "timestamp", "timestamp-utc"):
        return _moments(distinct, kind, options)
    if kind == "time":
        return _each(distinct, _time, pa.time64("us"))
    if kind == "boolean":
        return _each(distinct, _boolean, pa.bool_())
    if kind in _WHOLE:
        arrow, least, most = _WHOLE[kind]
        return _each(distinct, lambda text: _whole(text, options.decimal, least, most), arrow)
    if kind == "float64":
        return _each(distinct, lambda text: _float(text, options.decimal), pa.float64())
    digits = decimal_digits(kind)
    assert digits is not None, kind
    return _each(distinct, lambda text: _decimal(text, options.decimal, *digits), pa.decimal128(*digits))


def _each(distinct: DistinctTexts, read: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    """Return the distinct values, converted by `read`, which returns None for a value that does not fit.

    Raises NotOfType for the first such value.
    """
    values = [read(text.strip()) for text in distinct.values.to_pylist()]
    _check(distinct, np.array([value is not None for value in values], bool))
    return pa.array(values, kind)


def _check(distinct: DistinctTexts, fits: Any) -> None:
    if not fits.all():
        raise NotOfType(*distinct.first(distinct.chosen(~fits)))


def _number(text: str, decimal: str) -> Decimal | None:
    """Return the number in a text; None if the text is not a number.

    The number may have a sign, a unit, and separators between groups of three digits.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None or (match["before"] == "(") != (match["after"] == ")"):
        return None
    whole, point, rest = match["digits"].strip().partition(decimal)
    if any(separator in whole for separator in _SEPARATORS[decimal]):
        groups = re.split(rf"[{re.escape(_SEPARATORS[decimal])}]", whole)
        if not re.fullmatch("[1-9][0-9]{0,2}", groups[0]) or any(len(group) != 3 for group in groups[1:]):
            return None
        whole = "".join(groups)
    signs = [match["before"], match["sign"], match["after"]]
    if sum(sign in ("-", "+") for sign in signs) > 1:
        return None
    try:
        number = Decimal(f"{whole}{'.' if point else ''}{rest}")
    except InvalidOperation:
        return None
    return -number if {"-", "("} & set(signs) else number


def _whole(text: str, decimal: str, least: int, most: int) -> int | None:
    if re.fullmatch("0[xX][0-9a-fA-F]{1,16}", text):
        number = int(text, 16)
        return number if number <= most else None
    found = _number(text, decimal)
    if found is None or found.adjusted() > 20 or found != found.to_integral_value():
        return None
    return int(found) if least <= found <= most else None


def _float(text: str, decimal: str) -> float | None:
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        return float(text)
    found = _number(text, decimal)
    return float(found) if found is not None and abs(found) <= sys.float_info.max else None


def _decimal(text: str, decimal: str, precision: int, scale: int) -> Decimal | None:
    found = _number(text, decimal)
    if found is None or (found and found.adjusted() >= precision - scale):
        return None
    rounded = found.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    return rounded if rounded == found else None


def _boolean(text: str) -> bool | None:
    lowered = text.lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def _time(text: str) -> Any:
    padded = f"0{text}" if text[1:2] == ":" else text
    try:
        return datetime.time.fromisoformat(padded) if re.fullmatch(r"[0-9:.]{5,15}", padded) else None
    except ValueError:
        return None


def _moments(distinct: DistinctTexts, kind: str, options: ReadOptions) -> pa.Array:
    values = timestamps.iso(distinct.values, year_first=True)
    values = timestamps.iso(values) if options.day_first else values
    moments = timestamps.points_in_time(pa.chunked_array([values]))
    wanted = _wanted(moments.type, kind) if moments is not None else None
    if moments is None or wanted is None:
        raise NotOfType(*distinct.first(distinct.chosen(np.arange(len(values)) == _first_misfit(values, kind))))
    return moments.combine_chunks().cast(wanted)


def _first_misfit(values: pa.Array, kind: str) -> int:
    """Return the index of the first value that does not fit the type. It is found by bisection."""
    fitting, failing = 0, len(values)
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        moments = timestamps.points_in_time(pa.chunked_array([values.slice(0, middle)]))
        if moments is None or _wanted(moments.type, kind) is None:
            failing = middle
        else:
            fitting = middle
    return failing - 1


def _wanted(found: pa.DataType, kind: str) -> pa.DataType | None:
    if kind == "date":
        return found if pa.types.is_date(found) else None
    if pa.types.is_date(found):
        return pa.timestamp("us", "UTC" if kind == "timestamp-utc" else None)
    if kind == "timestamp":
        return found if found.tz is None else None
    return pa.timestamp(found.unit, "UTC")
