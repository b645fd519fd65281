"""Convert JSON numbers, strings and booleans, which are given as their text in the file, to columns of one type.

Numbers are converted as in CSV files. Strings can become dates or timestamps, but not numbers, because a string of
digits is text in JSON.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.tables.text_types import timestamps
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.distinct_texts import DistinctTexts
from data_generator.imported.tables.text_types.numbers import numbers

_NAN = "NaN"
_EXACT_CHARACTERS = 16
"""Numbers with fewer characters have at most 15 digits, which float64 holds exactly."""
_MOST_CHARACTERS = 400


def typed_scalars(path: str, texts: pa.ChunkedArray, kind: str) -> tuple[pa.ChunkedArray, Sequence[Note]]:
    """Return values of one kind ('boolean', 'number' or 'text') as a type that fits all of them, and warnings.

    `path` is the name of the column or nested field in messages, such as 'a.b'.
    """
    if kind == "boolean":
        return texts.cast(pa.bool_()), ()
    if kind == "number":
        return _numbers(path, texts)
    values = timestamps.points_in_time(texts)
    return texts if values is None else values, timestamps.notes(path, texts, values)


def _numbers(path: str, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Sequence[Note]]:
    is_nan = pc.equal(texts, _NAN)
    distinct = DistinctTexts(pc.fill_null(texts, ""), ("", _NAN))
    found = numbers(path, distinct)
    if found is None:
        # All values are NaN or Infinity, which Arrow parses too.
        return texts.cast(pa.float64()), ()
    if found.values is None:
        return texts, found.notes
    values = pa.chunked_array([found.values])
    if not pc.any(is_nan).as_py():
        return values, found.notes
    try:
        floats = values.cast(pa.float64()) if not pt.is_floating(values.type) else values
    except pa.ArrowInvalid:
        place = pc.index(is_nan, True).as_py()
        said = "stays text; NaN among integers that float64 does not hold"
        return texts, [Note(path, place, _NAN, said, f"{column_option(path, 'float64')} reads numbers all the same")]
    nans = pc.if_else(pc.fill_null(is_nan, False).combine_chunks(), float("nan"), floats.combine_chunks())
    return pa.chunked_array([nans]), found.notes


def compact(texts: pa.Array, has_fractions: bool) -> pa.Array:
    """Return numbers as int64, or as float64 if some have fractions.

    If a number would differ from its text, return the texts unchanged, so that `typed_scalars` can warn about the loss.
    """
    if not has_fractions:
        try:
            return texts.cast(pa.int64())
        except pa.ArrowInvalid:
            return texts
    values = texts.cast(pa.float64())
    is_suspect = pc.or_(pc.invert(pc.is_finite(values)), pc.less(pc.abs(values), sys.float_info.min))
    is_long = pc.greater_equal(pc.binary_length(texts), _EXACT_CHARACTERS)
    # Most numbers are written as Arrow writes them.
    is_suspect = pc.or_(is_suspect, pc.and_(is_long, pc.not_equal(values.cast(pa.string()), texts)))
    suspects = pc.fill_null(is_suspect, False)
    pairs = zip(texts.filter(suspects).to_pylist(), values.filter(suspects).to_pylist(), strict=True)
    return values if all(_is_exact(text, value) for text, value in pairs) else texts


def _is_exact(text: str, value: float) -> bool:
    if not math.isfinite(value) or len(text) > _MOST_CHARACTERS:
        return False
    written = Decimal(text)
    return written in (Decimal(repr(value)), Decimal(value))


def same_type(parts: Sequence[pa.Array | None]) -> list[pa.Array | None] | None:
    """Return the parts, all converted to the same type of numbers; None if this would change values.

    This is the case if a part is text, or if one part is float64 and another part has integers that float64 does not
    hold exactly.
    """
    kinds = {part.type for part in parts if part is not None}
    if pa.string() in kinds:
        return None
    if len(kinds) == 1:
        return list(parts)
    try:
        return [None if part is None else part.cast(pa.float64()) for part in parts]
    except pa.ArrowInvalid:
        return None
