"""Relations for columns without any value, which come back without their type. As in pandas, NaN is not a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.losses import Expect
from adapters.relations import floats
from adapters.relations.columns import is_text

if TYPE_CHECKING:
    import pyarrow as pa


def nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return empty columns of any type as float64, as pandas' readers infer them."""
    import pyarrow as pa

    return _nulls(column, pa.float64())


def nulls_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return empty columns of any type as text."""
    import pyarrow as pa

    return None if is_text(column) else _nulls(column, pa.string())


def nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return empty columns of any type as Arrow's null type."""
    import pyarrow as pa

    return _nulls(column, pa.null())


def objects_of_nulls_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return empty columns that pandas may hold as Python objects as text."""
    return nulls_as_text(column) if _may_be_objects(column) else None


def objects_of_nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return empty columns that pandas may hold as Python objects as Arrow's null type, which has no value to infer a
    type from."""
    return nulls_as_null(column) if _may_be_objects(column) else None


def dictionary_of_nulls_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return empty dictionary columns as Arrow's null type."""
    import pyarrow as pa

    return nulls_as_null(column) if pa.types.is_dictionary(column.type) else None


def dictionary_of_nulls_with(values: str) -> Expect:
    """Return empty dictionary columns as dictionaries with values of this Arrow type, as no value reveals theirs."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            return None
        as_type = pa.dictionary(column.type.index_type, pa.type_for_alias(values), column.type.ordered)
        return _nulls(column, as_type)

    return expect


def _nulls(column: pa.ChunkedArray, as_type: pa.DataType) -> pa.ChunkedArray | None:
    """Return nulls of `as_type` for each row; None if the column has this type, no rows, or any value."""
    import pyarrow as pa

    without_nan = floats.nan_as_null(column)
    column = column if without_nan is None else without_nan
    if column.type == as_type or not len(column) or column.null_count < len(column):
        return None
    return pa.chunked_array([pa.nulls(len(column), as_type)])


def _may_be_objects(column: pa.ChunkedArray) -> bool:
    """Return whether pandas may hold a column as Python objects. It holds text so with `--strings object`, and booleans
    with `nulls=numpy`; otherwise both keep their type."""
    import pyarrow.types as of

    kinds = (of.is_boolean, of.is_date, of.is_time, of.is_binary, of.is_large_binary, of.is_decimal, of.is_nested)
    return is_text(column) or any(is_it(column.type) for is_it in kinds)
