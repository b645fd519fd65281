"""Warn about text that looks like numbers or dates but is not written as pandas expects. Such columns stay text.

The warning names the command-line option that converts the column. This module converts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.distinct_texts import DistinctTexts
from data_generator.imported.tables.text_types.numbers import INTEGER, NUMBER, counted

_MIXED_SHARE = 0.5
"""If at least this share of the values in a text column look like numbers or dates, the user gets a warning."""

_GROUPED = r"^\s*[+-]?[0-9]{1,3}(?:[,'’\x{a0}\x{202f} ][0-9]{3})+(?:\.[0-9]+)?\s*$"
_AMOUNT = r"[+-]?[0-9][0-9.,'\x{a0}\x{202f} ]*"
_SIGN = r"(?:\p{Sc}|[A-Z]{3}|[A-Z]?\p{Sc}|Kč|kr\.?|zł|Ft|lei)"


@dataclass(frozen=True)
class _Hint:
    """A way of writing numbers: a regular expression for such numbers, a name for messages, and the next step for the
    user."""

    pattern: str
    called: str
    step: str


_AS_NUMBER = "{float64} reads them as numbers, {text} states that text is intended"
_HINTS = (
    _Hint(r"^\s*[+-]?0[xX][0-9a-fA-F]+\s*$", "hexadecimal numbers", "{int64} reads them as numbers"),
    _Hint(rf"{_GROUPED}|{INTEGER}", "numbers with separators between thousands", _AS_NUMBER),
    _Hint(
        r"^\s*[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]*),[0-9]+\s*$|^\s*[+-]?[0-9]+\s*$",
        "numbers with a decimal comma",
        "--decimal , reads them as numbers",
    ),
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
_DATES = r"^\s*[0-9]{1,2}([./-])[0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})(?:[T ]+[0-9]{1,2}:[0-9]{2}.*)?\s*$"
_DAY_BEYOND_12_FIRST = r"^\s*(?:1[3-9]|2[0-9]|3[01])[./-]"
_DAY_BEYOND_12_SECOND = r"^\s*[0-9]{1,2}[./-](?:1[3-9]|2[0-9]|3[01])[./-]"
_OTHER_DATES = (
    r"^\s*[0-9]{4}[/.][0-9]{1,2}[/.][0-9]{1,2}|^\s*[0-9]{1,2}[ -][A-Za-z]{3,9}\.?,?[ -][0-9]{2,4}|"
    r"^\s*[A-Za-z]{3,9}\.? [0-9]{1,2},? [0-9]{4}"
)
_AS_ISO = "write them as YYYY-MM-DD to have them read as dates"


def hint(name: str, texts: DistinctTexts) -> Note | None:
    """Return the warning on a text column that looks like numbers or dates; None if it does not."""
    if not texts.rows:
        return None
    numbers = texts.matching(NUMBER)
    for known in _HINTS:
        matched = texts.matching(known.pattern)
        special = texts.chosen(matched.distinct & ~numbers.distinct)
        if special.rows and matched.rows >= _MIXED_SHARE * texts.rows:
            step = known.step.format(**{kind: column_option(name, kind) for kind in ("float64", "int64", "text")})
            return Note(name, *texts.first(special), _stays_text(special.rows, texts.rows, known.called), step)
    return _dates(name, texts) or _mixed(name, texts)


def _stays_text(rows: int, of_rows: int, called: str) -> str:
    return f"stays text; {called} in {rows:,} of {counted(of_rows, 'value')}"


def _dates(name: str, texts: DistinctTexts) -> Note | None:
    matched = texts.matching(_DATES)
    if matched.rows < _MIXED_SHARE * texts.rows:
        others = texts.matching(_OTHER_DATES)
        if others.rows < _MIXED_SHARE * texts.rows:
            return None
        return Note(name, *texts.first(others), _stays_text(others.rows, texts.rows, "dates"), _AS_ISO)
    day_first, day_second = (texts.matching(pattern).rows for pattern in (_DAY_BEYOND_12_FIRST, _DAY_BEYOND_12_SECOND))
    called = "dates with the month first" if day_second and not day_first else "dates with the day first"
    if not day_first and not day_second:
        called = "dates whose day and month cannot be distinguished"
    step = _AS_ISO if day_second else "--day-first reads them as dates"
    return Note(name, *texts.first(matched), _stays_text(matched.rows, texts.rows, called), step)


def _mixed(name: str, texts: DistinctTexts) -> Note | None:
    """Return a warning if at least half of the values, but not all, are numbers; None otherwise.

    The warning names the first value that is not a number.
    """
    fitting = texts.matching(NUMBER)
    if not _MIXED_SHARE * texts.rows <= fitting.rows < texts.rows:
        return None
    others = texts.chosen(~fitting.distinct)
    said = f"mixed, stays text; no number in {others.rows:,} of {counted(texts.rows, 'value')}"
    return Note(name, *texts.first(others), said, "repair the file, or accept results for a column of text")
