"""Convert text columns of numbers, and warn about what the conversion loses or assumes.

Numbers are recognized as in pandas. There are warnings for losses: leading zeros, plus signs, and digits beyond the
precision of float64. If a column has numbers that no type holds, it stays text.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from data_generator.dataset import type_name
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.distinct_texts import DistinctTexts, Matched

INTEGER = r"^\s*[+-]?[0-9]+\s*$"
NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$|^\s*[+-]?(?i:inf|infinity)\s*$"
_COMMA_WHOLE = r"(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)"
_COMMA_INTEGER = rf"^\s*[+-]?{_COMMA_WHOLE}\s*$"
_COMMA_NUMBER = rf"^\s*[+-]?{_COMMA_WHOLE}(?:,[0-9]*)?(?:[eE][+-]?[0-9]+)?\s*$"

_INFINITE = r"(?i)inf"
_LEADING_ZERO = r"^\s*[+-]?0[0-9]"
_PLUS = r"^\s*\+"
_CODE_EXPONENT = r"^\s*[+-]?[0-9]+[eE][0-9]+\s*$"
"""Finds an exponent after an integer and without a sign. Codes such as 12E3 and 0012E3 look like this."""
_MANY_DIGITS = r"[0-9](?:\.?[0-9]){15,}"
"""Finds numbers with 16 or more digits. float64 holds all numbers of up to 15 digits exactly, but only some longer
ones."""
_MORE_THAN_DECIMAL = r"[1-9][0-9]{38}"
_FLOAT_DIGITS = 17
"""Digits sufficient to write every float64 exactly."""
_EXACT = Context(prec=2000)


@dataclass(frozen=True)
class Numbers:
    """A text column converted to numbers, with warnings. `values` is None if no type holds all numbers."""

    values: pa.Array | None
    notes: tuple[Note, ...] = ()


def pattern_of(decimal: str) -> str:
    """Return the regular expression for numbers with this decimal point, '.' or ','."""
    return NUMBER if decimal == "." else _COMMA_NUMBER


def numbers(name: str, texts: DistinctTexts, decimal: str = ".") -> Numbers | None:
    """Return the column as int64, uint64 or float64; None if some values are not numbers, or if all are infinite.

    `decimal` is the decimal point, '.' or ','. With a comma, points may separate thousands.
    """
    if texts.matching(pattern_of(decimal)).rows < texts.rows or texts.matching(_INFINITE).rows == texts.rows:
        return None
    plain = _plain(texts.values, decimal)
    if texts.matching(INTEGER if decimal == "." else _COMMA_INTEGER).rows == texts.rows:
        found = _integers(name, texts, plain)
    else:
        found = _floats(name, texts, plain)
    if found.values is None:
        return found
    grouped = _spelled(name, texts, found.values.type, r"\.", "points between thousands") if decimal == "," else ()
    kind = found.values.type
    return Numbers(
        texts.spread(found.values),
        (
            *_spelled(name, texts, kind, _LEADING_ZERO, "leading zeros"),
            *_spelled(name, texts, kind, _PLUS, "plus signs"),
            *_spelled(name, texts, kind, _CODE_EXPONENT, "exponents, which codes may look like"),
            *grouped,
            *found.notes,
        ),
    )


def _plain(values: pa.Array, decimal: str) -> pa.Array:
    """Return the texts as Arrow parses numbers: with '.' as the decimal point, without plus signs and thousands
    separators."""
    plain = pc.utf8_trim_whitespace(values)
    if decimal == ",":
        plain = pc.replace_substring(pc.replace_substring(plain, ".", ""), ",", ".")
    return pc.replace_substring_regex(plain, r"^\+", "")


def _spelled(name: str, texts: DistinctTexts, kind: pa.DataType, pattern: str, what: str) -> tuple[Note, ...]:
    matched = texts.matching(pattern)
    if not matched.rows:
        return ()
    said = f"{type_name(kind)}; {counted(matched.rows, 'value')} had {what}"
    step = f"{column_option(name, 'text')} keeps the column as text"
    return (Note(name, *texts.first(matched), said, step, changes_values=True),)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun in singular or plural, such as '1 value' or '1,200 values'."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _integers(name: str, texts: DistinctTexts, plain: pa.Array) -> Numbers:
    for kind in (pa.int64(), pa.uint64()):
        try:
            return Numbers(plain.cast(kind))
        except pa.ArrowInvalid:
            continue
    signed = texts.matching("-").rows > 0
    least, most = (-(1 << 63), (1 << 63) - 1) if signed else (0, (1 << 64) - 1)
    beyond = texts.where(lambda text: not least <= Decimal(text.strip()) <= most, texts.matching("[0-9]{19}").distinct)
    has_decimal = not texts.matching(_MORE_THAN_DECIMAL).rows
    return Numbers(None, (_beyond(name, texts, beyond, "64 bits", "decimal(38,0)" if has_decimal else None),))


def _beyond(name: str, texts: DistinctTexts, beyond: Matched, what: str, kind: str | None) -> Note:
    """Return the warning for values beyond a range, which is described by `what`.

    `kind` is a type that holds all values; None if there is no such type.
    """
    said = f"stays text; {counted(beyond.rows, 'number')} beyond {what}"
    step = f"{column_option(name, 'text')} states that text is intended"
    return Note(name, *texts.first(beyond), said, f"{column_option(name, kind)} reads numbers" if kind else step)


def _floats(name: str, texts: DistinctTexts, plain: pa.Array) -> Numbers:
    values = plain.cast(pa.float64())
    found = values.to_numpy(False)
    infinite = np.isinf(found) & ~texts.matching(_INFINITE).distinct
    if infinite.any():
        return Numbers(None, (_beyond(name, texts, texts.chosen(infinite), "the range of float64", None),))
    lost = texts.chosen(_lost(plain, values, found))
    if not lost.rows:
        return Numbers(values)
    said = f"float64; {counted(lost.rows, 'value')} had more digits than it holds"
    kind = "text" if texts.matching("[eE]|(?i)inf").rows else "decimal(38,10)"
    step = f"{column_option(name, kind)} keeps them"
    return Numbers(values, (Note(name, *texts.first(lost), said, step, changes_values=True),))


def _lost(plain: pa.Array, values: pa.Array, found: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return, for each value, whether the converted number differs from the number in the text."""
    lost = (found == 0) & pc.match_substring_regex(plain, "^[^eE]*[1-9]").to_numpy(False)
    long = pc.match_substring_regex(plain, _MANY_DIGITS)
    # Most numbers are written as Arrow writes them. These numbers need no slower check in Python.
    unlike = pc.and_(long, pc.not_equal(values.cast(pa.string()), plain)).to_numpy(False)
    for at in np.flatnonzero(unlike & ~lost):
        lost[at] = not _is_kept(plain[int(at)].as_py(), float(found[at]))
    return lost


def _is_kept(text: str, number: float) -> bool:
    """Return whether `number` equals the number in `text`, or is written like it with the same number of decimals.

    The second case counts only for texts with a fraction or exponent and at least 17 digits.
    """
    try:
        written = Decimal(text)
    except InvalidOperation:
        return False
    exact = Decimal(number)
    if exact == written or Decimal(repr(number)) == written:
        return True
    is_whole = "." not in text and "e" not in text.lower()
    if is_whole or len(written.normalize(_EXACT).as_tuple().digits) < _FLOAT_DIGITS:
        return False
    return exact.quantize(written, ROUND_HALF_EVEN, _EXACT) == written
