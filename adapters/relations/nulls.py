"""Columns without any value, which calls give back without their type. A NaN is no value here, as in pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.losses import Expect
from adapters.relations import floats
from adapters.relations.columns import is_text

if TYPE_CHECKING:
    import pyarrow as pa


def nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Columns of any type, as pandas' readers guess them from nothing."""
    import pyarrow as pa

    return _nulls(column, pa.float64())


def nulls_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Columns of any type, as text."""
    import pyarrow as pa

    return None if is_text(column) else _nulls(column, pa.string())


def nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Columns of any type, as Arrow's type of nulls alone."""
    import pyarrow as pa

    return _nulls(column, pa.null())


def objects_of_nulls_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Columns that pandas may hold as Python objects, as text."""
    return nulls_as_text(column) if _may_be_objects(column) else None


def objects_of_nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same, as Arrow's type of nulls alone: there is no object that would tell a type."""
    return nulls_as_null(column) if _may_be_objects(column) else None


def dictionary_of_nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Dictionaries alone, as Arrow's type of nulls alone."""
    import pyarrow as pa

    return nulls_as_null(column) if pa.types.is_dictionary(column.type) else None


def dictionary_of_nulls_with(values: str) -> Expect:
    """Dictionaries alone, as dictionaries whose values are of this Arrow type: there is none that would tell."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            return None
        as_type = pa.dictionary(column.type.index_type, pa.type_for_alias(values), column.type.ordered)
        return _nulls(column, as_type)

    return expect


def _nulls(column: pa.ChunkedArray, as_type: pa.DataType) -> pa.ChunkedArray | None:
    """As many nulls of the type; None for a column of this type, of no rows, or with a value."""
    import pyarrow as pa

    without_nan = floats.nan_as_null(column)
    column = column if without_nan is None else without_nan
    if column.type == as_type or not len(column) or column.null_count < len(column):
        return None
    return pa.chunked_array([pa.nulls(len(column), as_type)])


def _may_be_objects(column: pa.ChunkedArray) -> bool:
    """Text is held so with `--strings object`, and booleans with `nulls=numpy`; otherwise both keep their type."""
    import pyarrow.types as of

    kinds = (of.is_boolean, of.is_date, of.is_time, of.is_binary, of.is_large_binary, of.is_decimal, of.is_nested)
    return is_text(column) or any(is_it(column.type) for is_it in kinds)
