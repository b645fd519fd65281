"""Convert text columns to the type that all of their values have.

Numbers, booleans and missing values are recognized as in pandas.read_csv. Dates, times and timestamps are recognized
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import Refused
from data_generator.imported.tables.text_types import timestamps
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.distinct_texts import DistinctTexts
from data_generator.imported.tables.text_types.hints import hint
from data_generator.imported.tables.text_types.numbers import counted, numbers

_BOOLEAN = r"^(?:True|TRUE|true|False|FALSE|false)$"
_TRUE = r"^[Tt]"
_TIME = r"^(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?$"
_BEGINS_AS_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MIXED_SHARE = 0.5


@dataclass(frozen=True)
class Column:
    """The values of a column in the detected type, warnings, and the texts of missing values with their numbers of
    rows."""

    values: pa.Array
    notes: tuple[Note, ...]
    missing: dict[str, int]


def inferred(name: str, texts: pa.ChunkedArray, options: ReadOptions) -> Column:
    """Return a text column converted to a type that all values fit. If there is no such type, the column stays text.

    `texts` has no nulls. Timestamps are in microseconds, or in nanoseconds if their decimals need them.
    """
    distinct = DistinctTexts(texts)
    if not distinct.rows:
        return Column(pa.nulls(len(texts)), (), distinct.missing)
    if distinct.matching(_BOOLEAN).rows == distinct.rows:
        return Column(distinct.spread(pc.match_substring_regex(distinct.values, _TRUE)), (), distinct.missing)
    found = numbers(name, distinct, options.decimal)
    if found is not None:
        values = distinct.texts if found.values is None else found.values
        return Column(values, found.notes, distinct.missing)
    if distinct.matching(_TIME).rows == distinct.rows:
        return Column(distinct.spread(times(distinct.values)), (), distinct.missing)
    return _moments(name, distinct, options) or Column(
        distinct.texts, (*_words_for_missing(name, distinct), *_hints(name, distinct)), distinct.missing
    )


def times(values: pa.Array) -> pa.Array:
    """Return times of day, which are written as 9:30, 09:30 or 09:30:15, as time32 in seconds."""
    padded = pc.replace_substring_regex(pc.replace_substring_regex(values, "^(.):", r"0\1:"), "^(.....)$", r"\1:00")
    moments = pc.strptime(pc.binary_join_element_wise("1970-01-01", padded, " "), "%Y-%m-%d %H:%M:%S", "s")
    return moments.cast(pa.int64()).cast(pa.int32()).cast(pa.time32("s"))


def _moments(name: str, distinct: DistinctTexts, options: ReadOptions) -> Column | None:
    """Return the column as dates or timestamps; None if the values are something else.

    If at least half of the values begin like a date but the column cannot be converted, it is returned as text with
    warnings.
    """
    written = iso(distinct.values) if options.day_first else distinct.values
    texts = pa.chunked_array([distinct.spread(written)])
    moments = timestamps.points_in_time(pa.chunked_array([written]))
    if moments is not None:
        values = distinct.spread(moments.combine_chunks())
        notes = timestamps.notes(name, texts, pa.chunked_array([values]))
        return Column(values, tuple(notes), distinct.missing)
    if distinct.matching(_BEGINS_AS_DATE).rows < _MIXED_SHARE * distinct.rows:
        return None
    return Column(distinct.texts, tuple(timestamps.notes(name, texts, None)), distinct.missing)


def iso(values: pa.Array, *, year_first: bool = False) -> pa.Array:
    """Return the values, with dates that begin with the day written in ISO 8601: 2024-01-31 for 31.1.2024.

    With `year_first`, dates that begin with the year, such as 2024/1/31, are converted instead. Other texts are
    unchanged, except for white space at their ends.
    """
    padded = pc.utf8_trim_whitespace(values)
    if year_first:
        padded = pc.replace_substring_regex(padded, "^([0-9]{4})[/.]([0-9][/.])", r"\1-0\2")
        padded = pc.replace_substring_regex(padded, "^([0-9]{4})[/.]", r"\1-")
        padded = pc.replace_substring_regex(padded, "^([0-9]{4}-[0-9]{2})[/.]([0-9]\\b)", r"\1-0\2")
        return pc.replace_substring_regex(padded, "^([0-9]{4}-[0-9]{2})[/.]", r"\1-")
    padded = pc.replace_substring_regex(padded, "^([0-9])([./-])", r"0\1\2")
    padded = pc.replace_substring_regex(padded, "^([0-9]{2}[./-])([0-9][./-][0-9]{4})", r"\10\2")
    padded = pc.replace_substring_regex(padded, "([T ])([0-9]:)", r"\10\2")
    return pc.replace_substring_regex(padded, "^([0-9]{2})[./-]([0-9]{2})[./-]([0-9]{4})", r"\3-\2-\1")


def _words_for_missing(name: str, distinct: DistinctTexts) -> tuple[Note, ...]:
    """Return a warning if words that mean a missing value may be text. For example, 'NA' is also a country code."""
    words = {word: rows for word, rows in distinct.missing.items() if word}
    if not words:
        return ()
    word = next(iter(words))
    said = f"text; a word for missing in {counted(sum(words.values()), 'row')}"
    return (Note(name, distinct.first_missing(word), word, said, f"{column_option(name, 'text')} keeps them as text"),)


def _hints(name: str, distinct: DistinctTexts) -> tuple[Note, ...]:
    found = hint(name, distinct)
    return () if found is None else (found,)


def refuse_encoding(where: str, byte: int, around: bytes = b"") -> NoReturn:
    """Raise Refused for a byte that is not UTF-8. The message suggests an encoding that fits the bytes in `around`."""
    chars = around.decode("utf-8", "surrogateescape")
    wrong = [ord(char) - 0xDC00 for char in chars if "\udc80" <= char <= "\udcff"] or [byte]
    if len(wrong) < sum(ord(char) > 127 for char in chars) / 2:
        raise Refused(f"byte 0x{byte:02x} is not UTF-8, unlike the text around it", "Repair the line.", where)
    encoding = "cp1252" if any(0x80 <= each < 0xA0 for each in wrong) else "latin-1"
    raise Refused(f"byte 0x{byte:02x} is not UTF-8", f"Try `encoding={encoding!r}`.", where)
