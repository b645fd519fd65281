"""Detect dates and timestamps in the values of a text column.

The accepted forms are those of ISO 8601 that pandas, pyarrow, polars and DuckDB write: `2024-01-31`, `2024-01-31
10:00`, `T` instead of the blank, seconds with up to nine decimals, and an offset from UTC: `Z`, `+02`, `+02:00` or
`+0200`. Years are 1 to 9999.

A column becomes a date column, or a timestamp column in microseconds (nanoseconds if decimals need them). Every
timestamp keeps its instant, but timestamps with an offset become UTC. A column with a value in another form stays text.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.tables.text_types.column_notes import Note, column_option

_DATE = r"^(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d\d\d)-\d\d-\d\d"
_TIME = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?"
_OFFSET = r"(?:Z|[+-]\d\d(?::?\d\d)?)$"
FORM = rf"{_DATE}(?:{_TIME})?$|{_DATE}{_TIME}{_OFFSET}"
"""Finds values that are written as a date or a timestamp in an accepted form."""

_UTC = r"(?:Z|[+-]00(?::?00)?)$"
_MORE_THAN_MICROSECONDS = r"\.\d{7,9}"
_NEEDLESS_ZEROS = r"(\.\d{6})0+(Z|[+-][\d:]+)?$"
_YEAR_1_US, _YEAR_9999_US = -62_135_596_800_000_000, 253_402_300_799_999_999

_MIXED_SHARE = 0.5
"""If at least this share of the values in a text column are dates or timestamps, the user gets a warning."""


@dataclass(frozen=True)
class _Forms:
    """For each value of a column, whether it is a date, a timestamp without an offset, or a timestamp with an offset.

    Missing values are none of these.
    """

    dates: pa.ChunkedArray
    naive: pa.ChunkedArray
    aware: pa.ChunkedArray

    @classmethod
    def of(cls, texts: pa.ChunkedArray) -> _Forms:
        patterns = (f"{_DATE}$", f"{_DATE}{_TIME}$", f"{_DATE}{_TIME}{_OFFSET}")
        return cls(*(_matches(texts, pattern) for pattern in patterns))

    def others(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return, for each value, whether it is neither a date, nor a timestamp, nor missing."""
        return pc.and_not(pc.is_valid(texts), pc.or_(pc.or_(self.dates, self.naive), self.aware))


def points_in_time(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the values of a text column as dates or timestamps; None if they cannot be converted.

    They cannot be converted if all values are missing, if a value has another form, if only some of the timestamps have
    an offset, or if no type holds all values.
    """
    if not _may_be(texts):
        return None
    forms = _Forms.of(texts)
    if _count(forms.others(texts)):
        return None
    kind = _type(texts, forms)
    return None if kind is None else _cast(texts, kind)


def notes(name: str, texts: pa.ChunkedArray, values: pa.ChunkedArray | None) -> list[Note]:
    """Return the warnings about a text column. `values` is what `points_in_time` returned for the column."""
    forms = _Forms.of(texts)
    return _stays_text(name, texts, forms) if values is None else _changed(name, texts, forms, values)


def iso(values: pa.Array, *, year_first: bool = False) -> pa.Array:
    """Return the values, with dates that begin with the day written in ISO 8601: 2024-01-31 for 31.1.2024.

    With `year_first`, dates that begin with the year, such as 2024/1/31, are converted instead. Other texts are
    unchanged, except for white space at their ends.
    """
    padded = pc.replace_substring_regex(pc.utf8_trim_whitespace(values), "^([0-9./-]+[T ])([0-9]:)", r"\10\2")
    if year_first:
        padded = pc.replace_substring_regex(padded, "^([0-9]{4})[-/.]([0-9][-/.])", r"\1-0\2")
        padded = pc.replace_substring_regex(padded, "^([0-9]{4})[-/.]", r"\1-")
        padded = pc.replace_substring_regex(padded, "^([0-9]{4}-[0-9]{2})[-/.]([0-9]\\b)", r"\1-0\2")
        return pc.replace_substring_regex(padded, "^([0-9]{4}-[0-9]{2})[-/.]", r"\1-")
    padded = pc.replace_substring_regex(padded, "^([0-9])([./-])", r"0\1\2")
    padded = pc.replace_substring_regex(padded, "^([0-9]{2}[./-])([0-9][./-][0-9]{4})", r"\10\2")
    return pc.replace_substring_regex(padded, "^([0-9]{2})[./-]([0-9]{2})[./-]([0-9]{4})", r"\3-\2-\1")


def _changed(name: str, texts: pa.ChunkedArray, forms: _Forms, values: pa.ChunkedArray) -> list[Note]:
    found, present = [], len(texts) - texts.null_count
    moved = pc.and_not(forms.aware, _matches(texts, _UTC))
    if count := _count(moved):
        said = f"{count:,} of {present:,} points in time have other offsets than UTC and become UTC (the same instants)"
        found.append(_note(name, texts, moved, said, f"to keep the offsets, read it as text: {_as_text(name)}"))
    if pt.is_timestamp(values.type) and (count := _count(forms.dates)):
        said = f"{count:,} of {present:,} values are dates without a time and become midnight of their day"
        found.append(_note(name, texts, forms.dates, said, f"to keep the dates, read it as text: {_as_text(name)}"))
    return found


def _stays_text(name: str, texts: pa.ChunkedArray, forms: _Forms) -> list[Note]:
    others = forms.others(texts)
    count, present = _count(others), len(texts) - texts.null_count
    if count >= present:
        return []
    step = "repair the file, or accept results for a column of text"
    if count:
        said = f"stays text: {count:,} of {present:,} values are neither dates nor points in time"
        return [_note(name, texts, others, said, step)] if count <= present * (1 - _MIXED_SHARE) else []
    kind = _type(texts, forms)
    if kind is None:
        without = pc.or_(forms.dates, forms.naive)
        said = f"stays text: {_count(without):,} of {present:,} points in time have no offset from UTC, others do"
        return [_note(name, texts, without, said, step)]
    place = _first_that_fails(texts, kind)
    said = f"stays text: {kind} does not hold all of its dates or points in time"
    return [Note(name, place, texts[place].as_py(), said, step)]


def _type(texts: pa.ChunkedArray, forms: _Forms) -> pa.DataType | None:
    """Return the type for values in these forms; None if some timestamps have an offset and other values do not."""
    has_dates, has_naive, has_aware = (_count(mask) > 0 for mask in (forms.dates, forms.naive, forms.aware))
    if has_aware and (has_naive or has_dates):
        return None
    if not has_naive and not has_aware:
        return pa.date32()
    needs_ns = _count(_matches(_without_zeros(texts), _MORE_THAN_MICROSECONDS)) > 0
    return pa.timestamp("ns" if needs_ns else "us", "UTC" if has_aware else None)


def _cast(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the values converted to `kind`; None if Arrow, pandas or Python cannot represent some of them in this
    type."""
    try:
        values = _without_zeros(texts).cast(kind)
    except pa.ArrowInvalid:
        return None
    # pyarrow refuses nanoseconds outside 1677 to 2262.
    if pt.is_date32(kind) or kind.unit == "ns":
        return values
    limits = pc.min_max(values.cast(pa.int64())).as_py()
    if limits["min"] is None:
        return values
    return values if limits["min"] >= _YEAR_1_US and limits["max"] <= _YEAR_9999_US else None


def _first_that_fails(texts: pa.ChunkedArray, kind: pa.DataType) -> int:
    """Return the index of the first value that the type does not hold. It is found by bisection."""
    start, end = 0, len(texts)
    while end - start > 1:
        middle = (start + end) // 2
        if _cast(texts.slice(start, middle - start), kind) is None:
            end = middle
        else:
            start = middle
    return start


def _may_be(texts: pa.ChunkedArray) -> bool:
    """Return whether the first value looks like a date. This fast check excludes most text columns."""
    first = next((text for text in texts.drop_null().slice(0, 1).to_pylist()), None)
    return first is not None and first[4:5] == "-"


def _without_zeros(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(texts, _NEEDLESS_ZEROS, r"\1\2")


def _matches(texts: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _count(mask: pa.ChunkedArray) -> int:
    return pc.sum(mask).as_py() or 0


def _note(name: str, texts: pa.ChunkedArray, mask: pa.ChunkedArray, said: str, step: str) -> Note:
    place = pc.index(mask, True).as_py()
    return Note(name, place, texts[place].as_py(), said, step)


def _as_text(name: str) -> str:
    return column_option(name, "text")
