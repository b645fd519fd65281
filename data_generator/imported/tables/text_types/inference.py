"""Convert text columns to the type that all of their values have.

Numbers, booleans and missing values are recognized as in pandas.read_csv. Dates, times and timestamps are recognized
too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import Refused
from data_generator.imported.tables.text_types import timestamps
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.distinct_texts import DistinctTexts
from data_generator.imported.tables.text_types.hints import dates_with_year_first, has_decimal_commas, hint
from data_generator.imported.tables.text_types.numbers import counted, numbers

_BOOLEAN = r"^(?:True|TRUE|true|False|FALSE|false)$"
_TRUE = r"^[Tt]"
_TIME = r"^(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?$"
_BEGINS_AS_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MIXED_SHARE = 0.5
_GROUPED_BY_POINT = re.compile(r"^\s*[+-]?(?:[1-9][0-9]{0,2}\.[0-9]{3}|[0-9]{1,3})\s*$")
"""Finds numbers whose points, if they have any, may separate thousands."""
_FEW = 20
"""Number of values that are examined first, because they exclude most columns."""


@dataclass(frozen=True)
class Column:
    """The values of a column in the detected type, warnings, and the texts of missing values with their numbers of
    rows."""

    values: pa.Array
    notes: tuple[Note, ...]
    missing: dict[str, int]
    has_decimal_commas: bool = False
    """Whether the column is text, because its numbers have decimal commas."""
    thousands: Note | None = None
    """A warning that applies if other columns of the file have decimal commas: points may separate thousands."""

    @property
    def has_words(self) -> bool:
        """Return whether words such as 'NA' mean a missing value in the column."""
        return any(self.missing)


def inferred(name: str, texts: pa.ChunkedArray, options: ReadOptions) -> Column:
    """Return a text column converted to a type that all values fit. If there is no such type, the column stays text.

    `texts` has no nulls. Timestamps are in microseconds, or in nanoseconds if their decimals need them.
    """
    distinct = DistinctTexts(texts)
    if not distinct.rows:
        return Column(pa.nulls(len(texts)), _words_for_missing(name, distinct, "no values"), distinct.missing)
    if distinct.matching(_BOOLEAN).rows == distinct.rows:
        return Column(distinct.spread(pc.match_substring_regex(distinct.values, _TRUE)), (), distinct.missing)
    found = numbers(name, distinct, options.decimal)
    if found is not None and found.values is not None:
        thousands = _thousands(name, distinct) if options.decimal == "." and pt.is_floating(found.values.type) else None
        return Column(found.values, found.notes, distinct.missing, thousands=thousands)
    if found is not None:
        return _text(name, distinct, found.notes)
    if distinct.matching(_TIME).rows == distinct.rows:
        return Column(distinct.spread(times(distinct.values)), (), distinct.missing)
    values, notes = _moments(name, distinct, options)
    if values is not None:
        return Column(values, notes, distinct.missing)
    if notes:
        return _text(name, distinct, notes)
    advice = hint(name, distinct, options)
    if advice is None:
        return _text(name, distinct, ())
    return _text(name, distinct, (advice,), has_decimal_commas=options.decimal == "." and has_decimal_commas(distinct))


def _text(name: str, distinct: DistinctTexts, notes: tuple[Note, ...], *, has_decimal_commas: bool = False) -> Column:
    """Return the column as text, with a warning about words for missing values in addition to `notes`."""
    words = _words_for_missing(name, distinct, "text")
    return Column(distinct.texts, (*words, *notes), distinct.missing, has_decimal_commas)


def times(values: pa.Array) -> pa.Array:
    """Return times of day, which are written as 9:30, 09:30 or 09:30:15, as time32 in seconds."""
    padded = pc.replace_substring_regex(pc.replace_substring_regex(values, "^(.):", r"0\1:"), "^(.....)$", r"\1:00")
    moments = pc.strptime(pc.binary_join_element_wise("1970-01-01", padded, " "), "%Y-%m-%d %H:%M:%S", "s")
    return moments.cast(pa.int64()).cast(pa.int32()).cast(pa.time32("s"))


def _moments(name: str, distinct: DistinctTexts, options: ReadOptions) -> tuple[pa.Array | None, tuple[Note, ...]]:
    """Return the column as dates or timestamps, with warnings.

    The values are None if the column cannot be converted. In this case there are only warnings if at least half of the
    values begin like a date.
    """
    written = timestamps.iso(distinct.values) if options.day_first else distinct.values
    texts = pa.chunked_array([distinct.spread(written)])
    moments = timestamps.points_in_time(pa.chunked_array([written]))
    if moments is not None:
        values = distinct.spread(moments.combine_chunks())
        return values, tuple(timestamps.notes(name, texts, pa.chunked_array([values])))
    if distinct.matching(_BEGINS_AS_DATE).rows < _MIXED_SHARE * distinct.rows:
        return None, ()
    advice = dates_with_year_first(name, distinct)
    return None, (advice,) if advice is not None else tuple(timestamps.notes(name, texts, None))


def _thousands(name: str, distinct: DistinctTexts) -> Note | None:
    """Return a warning if the points in the numbers may separate thousands; None otherwise.

    This is so if exactly three digits follow each point, and no number without a point has four or more digits.
    """
    beginning = distinct.values.slice(0, _FEW).to_pylist()
    if not all(_GROUPED_BY_POINT.search(text) for text in beginning):
        return None
    if distinct.matching(_GROUPED_BY_POINT.pattern).rows < distinct.rows:
        return None
    said = "float64; points are read as decimal points, but other columns have decimal commas"
    step = f"--decimal , reads points as thousands, {column_option(name, 'float64')} keeps them as decimal points"
    return Note(name, *distinct.first(distinct.matching(r"\.")), said, step, changes_values=True)


def _words_for_missing(name: str, distinct: DistinctTexts, what: str) -> tuple[Note, ...]:
    """Return a warning if words that mean a missing value may be text. For example, 'NA' is also a country code.

    `what` describes the column.
    """
    words = {word: rows for word, rows in distinct.missing.items() if word}
    if not words:
        return ()
    word = next(iter(words))
    said = f"{what}; a word for missing in {counted(sum(words.values()), 'row')}"
    step = f"{column_option(name, 'text')} keeps them as text"
    return (Note(name, distinct.first_missing(word), word, said, step, changes_values=True),)


def refuse_encoding(where: str, byte: int, around: bytes = b"") -> NoReturn:
    """Raise Refused for a byte that is not UTF-8. `around` has the bytes near it.

    No encoding is guessed, because most bytes are valid in many encodings but mean other letters.
    """
    chars = around.decode("utf-8", "surrogateescape")
    wrong = sum("\udc80" <= char <= "\udcff" for char in chars) or 1
    if wrong < sum(ord(char) > 127 for char in chars) / 2:
        raise Refused(f"byte 0x{byte:02x} is not UTF-8, unlike the text around it", "Repair the line.", where)
    raise Refused(
        f"byte 0x{byte:02x} is not UTF-8",
        "Name the file's encoding by `encoding`, e.g. cp1252 (Western European languages), cp1250 (Central European "
        "languages), cp1251 (Cyrillic), shift_jis (Japanese) or gb18030 (Chinese).",
        where,
    )
