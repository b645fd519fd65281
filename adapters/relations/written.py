"""Relations for columns that come back as the text of their values, and parsers for such text."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from adapters.losses import Expect
from adapters.relations import floats
from adapters.relations.columns import is_text

if TYPE_CHECKING:
    import pyarrow as pa


def written_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return columns of temporal, binary and nested types, unchanged. Text formats have no syntax for these types. Use
    it with `parse_text`."""
    import pyarrow.types as of

    kinds = (of.is_temporal, of.is_binary, of.is_large_binary, of.is_nested)
    return column if any(is_it(column.type) for is_it in kinds) else None


def of_types(*types: str) -> Expect:
    """Return columns whose Arrow type's name begins with one of `types`, unchanged. Use it with `parse_text`."""
    return lambda column: column if str(column.type).startswith(types) else None


def anything_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return columns with nulls or NaN, except text columns, unchanged. Use it with `parse_text`."""
    if is_text(column):
        return None
    without_nan = floats.nan_as_null(column)
    column = column if without_nan is None else without_nan
    return column if column.null_count else None


def parse_text(text: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    """Parse text that pandas wrote for values of `arrow_type`. Empty text is a null.

    Raises pyarrow.ArrowInvalid, ValueError or SyntaxError for text that is not a value of this type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    if pa.types.is_timestamp(arrow_type):
        # Parse as us or ns, because pandas may write more decimals than the column's unit has.
        unit = "ns" if arrow_type.unit == "ns" else "us"
        return text.cast(pa.timestamp(unit, arrow_type.tz and "UTC")).cast(arrow_type)
    if pa.types.is_time(arrow_type):
        moments = pc.binary_join_element_wise(pa.scalar("1970-01-01", text.type), text, pa.scalar(" ", text.type))
        return moments.cast(pa.timestamp("ns")).cast(arrow_type)
    if pa.types.is_duration(arrow_type):
        import pandas as pd

        spans = pd.to_timedelta(text.to_numpy(zero_copy_only=False))
        return pa.chunked_array([pa.array(spans).cast(arrow_type)])
    if pa.types.is_nested(arrow_type) or pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        is_list = pa.types.is_list(arrow_type)
        values = [_literal(value, is_list) for value in text.to_pylist()]
        return pa.chunked_array([pa.array(values, arrow_type)])
    return text.cast(arrow_type)


def parse_blob(text: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    """Parse text that DuckDB wrote for bytes, with an escape such as \\x00 for each byte that is not printable
    ASCII."""
    import pyarrow as pa

    def value(text: str | None) -> bytes | None:
        if text is None:
            return None
        return re.sub(rb"\\x([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode())

    return pa.chunked_array([pa.array(map(value, text.to_pylist()), arrow_type)])


def _literal(text: str | None, is_list: bool) -> Any:
    if text is None:
        return None
    # numpy writes its arrays without commas.
    return ast.literal_eval(text.replace(" ", ",") if is_list and "," not in text else text)
