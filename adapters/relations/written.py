"""Functions for columns that come back as text: they select such columns, and parse the text back into values.

The functions with a parameter `column` return the column unchanged if the format returns it as text, else None.
"""

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
    """Return a column of temporal, binary or nested type unchanged; None for other types.

    Text formats write such values as texts. `parse_text` parses these texts before they are compared, so the original
    column is expected."""
    import pyarrow.types as of

    kinds = (of.is_temporal, of.is_binary, of.is_large_binary, of.is_nested)
    return column if any(is_it(column.type) for is_it in kinds) else None


def of_types(*types: str) -> Expect:
    """Return a function that returns a column unchanged if the name of its Arrow type begins with one of `types`, and
    None for other columns. Use it with `parse_text`."""
    return lambda column: column if str(column.type).startswith(types) else None


def anything_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the column, with NaN as null, if it has nulls or NaN and is not a text column; else None. Use this
    function together with `parse_text`."""
    if is_text(column):
        return None
    without_nan = floats.nan_as_null(column)
    column = column if without_nan is None else without_nan
    return column if column.null_count else None


def parse_text(text: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    """Return the values that a column of text represents, as a column of type `arrow_type`. The text is in the form
    that pandas writes. Empty text is null.

    Raises pyarrow.ArrowInvalid, ValueError or SyntaxError for text that is not a value of this type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    if pa.types.is_timestamp(arrow_type):
        # The text is parsed as us or ns, because pandas may write more decimals of a second than the unit has.
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
    """Return the bytes that a column of DuckDB's text represents. DuckDB writes each byte that is not printable ASCII
    as an escape such as \\x00."""
    import pyarrow as pa

    def value(text: str | None) -> bytes | None:
        if text is None:
            return None
        return re.sub(rb"\\x([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode())

    return pa.chunked_array([pa.array(map(value, text.to_pylist()), arrow_type)])


def _literal(text: str | None, is_list: bool) -> Any:
    if text is None:
        return None
    # numpy prints its arrays with spaces between the values instead of commas.
    return ast.literal_eval(text.replace(" ", ",") if is_list and "," not in text else text)
