"""Warn about text that looks like numbers or dates but is not written as pandas expects. Such columns stay text.

The warning names the command-line option that converts the column. This module converts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from data_generator.imported.read_options import ReadOptions
from data_generator.imported.tables.text_types import timestamps
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.distinct_texts import DistinctTexts
from data_generator.imported.tables.text_types.numbers import INTEGER, counted, pattern_of

_MIXED_SHARE = 0.5
"""If at least this share of the values in a text column look like numbers or dates, the user gets a warning."""

_SPACES = r"\x{a0}\x{202f} "
_GROUPED = {
    ".": rf"^\s*[+-]?[1-9][0-9]{{0,2}}(?:[,'’{_SPACES}][0-9]{{3}})+(?:\.[0-9]+)?\s*$",
    ",": rf"^\s*[+-]?[1-9][0-9]{{0,2}}(?:[.'’{_SPACES}][0-9]{{3}})+(?:,[0-9]+)?\s*$",
}
"""Decimal point -> pattern of numbers with separators between thousands. The first group never begins with 0."""
_GROUPED_OR_DECIMAL = r"^\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*$"
_DECIMAL_COMMA = r"^\s*[+-]?(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]*),[0-9]+\s*$"
_ONLY_DECIMAL_COMMA = r"^\s*[+-]?(?:0*,[0-9]+|[0-9.]*,(?:[0-9]{1,2}|[0-9]{4,}))\s*$"
_DECIMAL_POINT = r"^\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*$"
_AMOUNT = rf"[+-]?[0-9][0-9.,'{_SPACES}]*"
_SIGN = r"(?:\p{Sc}|[A-Z]{3}|[A-Z]?\p{Sc}|Kč|kr\.?|zł|Ft|lei)"


@dataclass(frozen=True)
class _Hint:
    """A way of writing numbers: a regular expression for such numbers, a name for messages, and the next step for the
    user."""

    pattern: str
    called: str
    step: str


_AS_NUMBER = "{float64} reads them as numbers, {text} states that text is intended"


def _hints(decimal: str) -> tuple[_Hint, ...]:
    """Return the ways of writing numbers that are recognized with this decimal point, '.' or ','."""
    points = (
        _Hint(
            rf"{_GROUPED_OR_DECIMAL}|{INTEGER}",
            "numbers with separators between thousands or decimal commas",
            "{float64} reads them as thousands, --decimal , as decimals",
        ),
        _Hint(rf"{_DECIMAL_COMMA}|{INTEGER}", "numbers with a decimal comma", "--decimal , reads them as numbers"),
    )
    commas = (
        _Hint(
            rf"{_DECIMAL_POINT}|{INTEGER}",
            "numbers with a decimal point",
            "omit --decimal , to read them as numbers; {text} states that text is intended",
        ),
    )
    return (
        _Hint(r"^\s*[+-]?0[xX][0-9a-fA-F]+\s*$", "hexadecimal numbers", "{int64} reads them as numbers"),
        *(points if decimal == "." else commas),
        _Hint(rf"{_GROUPED[decimal]}|{INTEGER}", "numbers with separators between thousands", _AS_NUMBER),
        _Hint(r"^\s*[+-]?[0-9]+(?:[.,][0-9]+)?\s*%\s*$", "percentages", "{float64} reads the numbers before the sign"),
        _Hint(
            rf"^\s*[-+(]?\s*{_SIGN}\s*{_AMOUNT}\)?\s*$|^\s*[(]?{_AMOUNT}\s*{_SIGN}\)?\s*$",
            "amounts of a currency",
            "{float64} reads the numbers without it",
        ),
        _Hint(
            r"^\s*\([0-9][0-9.,]*\)\s*$|^\s*[0-9.,]+-\s*$",
            "negative numbers in parentheses or with a trailing sign",
            _AS_NUMBER,
        ),
    )


_HINTS = {decimal: _hints(decimal) for decimal in (".", ",")}
_DATES = r"^\s*[0-9]{1,2}([./-])[0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})(?:[T ]+[0-9]{1,2}:[0-9]{2}.*)?\s*$"
_DAY_BEYOND_12_FIRST = r"^\s*(?:1[3-9]|2[0-9]|3[01])[./-]"
_DAY_BEYOND_12_SECOND = r"^\s*[0-9]{1,2}[./-](?:1[3-9]|2[0-9]|3[01])[./-]"
_OTHER_DATES = (
    r"^\s*[0-9]{4}[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12][0-9]|3[01])(?:[^0-9]|$)|"
    r"^\s*[0-9]{1,2}[ -][A-Za-z]{3,9}\.?,?[ -][0-9]{2,4}|^\s*[A-Za-z]{3,9}\.? [0-9]{1,2},? [0-9]{4}"
)
_AS_ISO = (
    "write them as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS, e.g. with the offset +00:00, to have them read as dates or "
    "timestamps"
)


def hint(name: str, texts: DistinctTexts, options: ReadOptions) -> Note | None:
    """Return the warning on a text column that looks like numbers or dates; None if it does not.

    `options` are those with which the file is read. The warning does not advise an option that was given.
    """
    if not texts.rows:
        return None
    numbers = texts.matching(pattern_of(options.decimal))
    found: tuple[int, Note] | None = None
    for known in _HINTS[options.decimal]:
        matched = texts.matching(known.pattern)
        special = texts.chosen(matched.distinct & ~numbers.distinct)
        # If several ways fit the same number of values, the first is meant.
        if special.rows and matched.rows >= _MIXED_SHARE * texts.rows and (found is None or matched.rows > found[0]):
            step = known.step.format(**{kind: column_option(name, kind) for kind in ("float64", "int64", "text")})
            note = Note(name, *texts.first(special), _stays_text(special.rows, texts.rows, known.called), step)
            found = matched.rows, note
    if found is not None:
        return found[1]
    return _dates(name, texts, options) or _mixed(name, texts, options)


def has_decimal_commas(texts: DistinctTexts) -> bool:
    """Return whether at least half of the values are numbers with a comma, of which some is certainly a decimal comma,
    as in '0,500' and '1,5'."""
    is_usual = texts.matching(rf"{_DECIMAL_COMMA}|{INTEGER}").rows >= _MIXED_SHARE * texts.rows
    return is_usual and texts.matching(_ONLY_DECIMAL_COMMA).rows > 0


def _stays_text(rows: int, of_rows: int, called: str) -> str:
    return f"stays text; {called} in {rows:,} of {counted(of_rows, 'value')}"


def _dates(name: str, texts: DistinctTexts, options: ReadOptions) -> Note | None:
    matched = texts.matching(_DATES)
    if matched.rows < _MIXED_SHARE * texts.rows:
        return _other_dates(name, texts)
    day_first, day_second = (texts.matching(pattern).rows for pattern in (_DAY_BEYOND_12_FIRST, _DAY_BEYOND_12_SECOND))
    called = "dates with the month first" if day_second and not day_first else "dates with the day first"
    if not day_first and not day_second:
        called = "dates whose day and month cannot be distinguished"
    is_read = not options.day_first and _type_of(timestamps.iso(texts.values)) is not None
    step = "--day-first reads them as dates" if is_read else _AS_ISO
    return Note(name, *texts.first(matched), _stays_text(matched.rows, texts.rows, called), step)


def _other_dates(name: str, texts: DistinctTexts) -> Note | None:
    """Return a warning if at least half of the values are dates that neither begin with the day nor are in an accepted
    form."""
    matched = texts.matching(_OTHER_DATES)
    others = texts.chosen(matched.distinct & ~texts.matching(timestamps.FORM).distinct)
    if not others.rows or matched.rows < _MIXED_SHARE * texts.rows:
        return None
    said = _stays_text(others.rows, texts.rows, "other forms of dates")
    return dates_with_year_first(name, texts) or Note(name, *texts.first(others), said, _AS_ISO)


def dates_with_year_first(name: str, texts: DistinctTexts) -> Note | None:
    """Return a warning for a text column that becomes dates or timestamps if the user names the type; None if it does
    not."""
    kind = _type_of(timestamps.iso(texts.values, year_first=True))
    others = texts.chosen(~texts.matching(timestamps.FORM).distinct)
    if kind is None or not others.rows:
        return None
    said = _stays_text(others.rows, texts.rows, "other forms of dates")
    return Note(name, *texts.first(others), said, f"{column_option(name, kind)} reads them as dates")


def _type_of(values: pa.Array) -> str | None:
    """Return the user's name of the type of dates or timestamps that holds all values; None if there is none."""
    moments = timestamps.points_in_time(pa.chunked_array([values]))
    if moments is None:
        return None
    if pt.is_date(moments.type):
        return "date"
    return "timestamp" if moments.type.tz is None else "timestamp-utc"


def _mixed(name: str, texts: DistinctTexts, options: ReadOptions) -> Note | None:
    """Return a warning if at least half of the values, but not all, are numbers; None otherwise.

    The warning names the first value that is not a number.
    """
    fitting = texts.matching(pattern_of(options.decimal))
    if not _MIXED_SHARE * texts.rows <= fitting.rows < texts.rows:
        return None
    others = texts.chosen(~fitting.distinct)
    said = f"mixed, stays text; no number in {others.rows:,} of {counted(texts.rows, 'value')}"
    return Note(name, *texts.first(others), said, "repair the file, or accept results for a column of text")
