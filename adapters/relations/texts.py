"""Functions that convert text and dictionary columns to what a read returns if a format loses or cuts values, reads
text as numbers, or returns a dictionary's values as a plain column.

Every function, or the function that it returns, returns None for columns that come back exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from adapters.losses import Expect
from adapters.relations.columns import is_text, null_where
from adapters.relations.integers import integers_with_nulls_as_float64

if TYPE_CHECKING:
    import pyarrow as pa


def words_as_null(words: Iterable[str]) -> Expect:
    """Return a function that replaces these words in a text column by nulls."""
    missing = sorted(words)

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not is_text(column):
            return None
        return null_where(column, pc.is_in(column, value_set=pa.array(missing, column.type)))

    return expect


def formulas_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a text column with nulls in place of values that begin with '=', because spreadsheets treat such values as
    formulas."""
    import pyarrow.compute as pc

    return null_where(column, pc.starts_with(column, "=")) if is_text(column) else None


def numeric_text_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a text column as numbers if every value is the text of a number; None for other columns.

    The numbers are int64, or float64 if the column has nulls or fractions."""
    import pyarrow as pa

    if not is_text(column) or column.null_count == len(column):
        return None
    for number in (pa.int64(), pa.float64()):
        try:
            numbers = column.cast(number)
        except pa.ArrowInvalid:
            continue
        return numbers.cast(pa.float64(), safe=False) if numbers.null_count else numbers
    return None


def any_numeric_text_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a text column as numbers if every value is the text of a number. Use this function for readers whose int64
    columns can have nulls.

    The numbers are int64, or float64 if the column has fractions. Returns None for other columns."""
    numbers = numeric_text_as_numbers(column.drop_null())
    return None if numbers is None else column.cast(numbers.type)


def unpadded_numeric_text_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the same as `any_numeric_text_as_numbers`, but None if any value begins with a zero before another digit,
    as some postcodes do."""
    import pyarrow.compute as pc

    if not is_text(column) or pc.any(pc.match_substring_regex(column, r"^[+-]?0\d")).as_py():
        return None
    return any_numeric_text_as_numbers(column)


def text_cut_at(characters: int) -> Expect:
    """Return a function that cuts each value of a text column after this number of characters."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow.compute as pc

        if not is_text(column) or not pc.any(pc.greater(pc.utf8_length(column), characters)).as_py():
            return None
        return pc.utf8_slice_codeunits(column, 0, characters)

    return expect


def null_as_empty_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a text column with empty strings in place of nulls; None for columns without nulls and other types."""
    import pyarrow.compute as pc

    return pc.fill_null(column, "") if is_text(column) and column.null_count else None


def dictionary_as_values(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a dictionary column as a plain column of the same values; None for other types."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else None


def dictionary_of_numbers_as_values(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a dictionary column of integers or floats as a plain column of the same values; None for other columns."""
    import pyarrow.types as of

    if not of.is_dictionary(column.type):
        return None
    values = column.type.value_type
    return column.cast(values) if of.is_integer(values) or of.is_floating(values) else None


def dictionary_of_integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a dictionary column of integers with nulls as a plain float64 column; None for other columns.

    pandas uses float64 because numpy's integers cannot be null. Integers that float64 cannot represent are rounded."""
    values = dictionary_of_numbers_as_values(column)
    return None if values is None else integers_with_nulls_as_float64(values)


def dictionary_without_order(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an ordered dictionary column as an unordered dictionary column; None for other columns."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    without = pa.dictionary(column.type.index_type, column.type.value_type)
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary) for chunk in column.chunks]
    return pa.chunked_array(chunks, without)
