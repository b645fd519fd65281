"""Functions that convert all-null columns to what a read returns if a format loses the type of such columns.

NaN counts as null here. Every function returns None for columns with other values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.losses import Expect
from adapters.relations import floats
from adapters.relations.columns import is_text

if TYPE_CHECKING:
    import pyarrow as pa


def nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an all-null column as float64, the type that pandas' readers infer for a column without values."""
    import pyarrow as pa

    return _nulls(column, pa.float64())


def nulls_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an all-null column as text."""
    import pyarrow as pa

    return None if is_text(column) else _nulls(column, pa.string())


def nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an all-null column as Arrow's null type."""
    import pyarrow as pa

    return _nulls(column, pa.null())


def objects_of_nulls_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an all-null column as text if its type is one that pandas may store as Python objects; otherwise None."""
    return nulls_as_text(column) if _may_be_objects(column) else None


def objects_of_nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of nulls as Arrow's null type, if pandas may store it as Python objects; else None.

    pyarrow cannot infer the type of a column of Python objects that are all null."""
    return nulls_as_null(column) if _may_be_objects(column) else None


def dictionary_of_nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an all-null dictionary column as Arrow's null type; None for other columns."""
    import pyarrow as pa

    return nulls_as_null(column) if pa.types.is_dictionary(column.type) else None


def dictionary_of_nulls_with(values: str) -> Expect:
    """Return a function that changes an all-null dictionary column into a dictionary with values of the Arrow type
    named `values`, such as 'double'."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            return None
        as_type = pa.dictionary(column.type.index_type, pa.type_for_alias(values), column.type.ordered)
        return _nulls(column, as_type)

    return expect


def _nulls(column: pa.ChunkedArray, as_type: pa.DataType) -> pa.ChunkedArray | None:
    """Return a column of nulls as type `as_type`. Return None if the column already has this type, has no rows, or has
    values that are not null."""
    import pyarrow as pa

    without_nan = floats.nan_as_null(column)
    column = column if without_nan is None else without_nan
    if column.type == as_type or not len(column) or column.null_count < len(column):
        return None
    return pa.chunked_array([pa.nulls(len(column), as_type)])


def _may_be_objects(column: pa.ChunkedArray) -> bool:
    """Return whether pandas may store the values of a column as Python objects.

    pandas does so for text only with `--strings object`, and for booleans only with `nulls=numpy`."""
    import pyarrow.types as of

    kinds = (of.is_boolean, of.is_date, of.is_time, of.is_binary, of.is_large_binary, of.is_decimal, of.is_nested)
    return is_text(column) or any(is_it(column.type) for is_it in kinds)
