"""Translate conditions (adapters.predicate) for pyarrow, polars and SQL, which several formats use.

All translated conditions follow the rules of adapters.predicate: NaN satisfies no condition, a null satisfies only the
condition `null`, and -0.0 equals 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from adapters.contract import PartCall
from adapters.predicate import Kind, Predicate

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc


ARROW_TEXTS: Mapping[Kind, str] = {
    Kind.RANGE: "(pc.field(column) >= low) & (pc.field(column) < high)",
    Kind.EQUAL: "pc.field(column) == value",
    Kind.IN: "pc.field(column).isin(values)",
    Kind.NULL: "pc.field(column).is_null()",
    Kind.PREFIX: "pc.starts_with(pc.field(column), pattern=prefix)",
}
"""Kind of condition -> the code with which a user filters by pyarrow's data sets, for values other than floats. The
code needs the import `IMPORT_COMPUTE`."""
IMPORT_COMPUTE = "import pyarrow.compute as pc"


def dataset_calls(name: str) -> dict[Kind, PartCall]:
    """Return for each kind of condition the code with which a user filters a file by pyarrow's data sets.

    `name` is pyarrow's name of the file's format, such as 'ipc'."""
    imports = (IMPORT_COMPUTE, "import pyarrow.dataset as ds")
    opened = f'ds.dataset({{path}}, format="{name}")'
    return {
        kind: PartCall(f"{opened}.to_table(columns=columns, filter={met})", (), imports)
        for kind, met in ARROW_TEXTS.items()
    }


POLARS_TEXTS: Mapping[Kind, str] = {
    Kind.RANGE: "(pl.col(column) >= low) & (pl.col(column) < high)",
    Kind.EQUAL: "pl.col(column) == value",
    Kind.IN: "pl.col(column).is_in(values)",
    Kind.NULL: "pl.col(column).is_null()",
    Kind.PREFIX: "pl.col(column).str.starts_with(prefix)",
}
"""Kind of condition -> the code with which a user filters a lazy frame of polars."""
SQL_TEXTS: Mapping[Kind, str] = {
    Kind.RANGE: 'f"{column} >= {low!r} AND {column} < {high!r}"',
    Kind.EQUAL: 'f"{column} = {value!r}"',
    Kind.IN: "f\"{column} IN ({', '.join(map(repr, values))})\"",
    Kind.NULL: 'f"{column} IS NULL"',
    Kind.PREFIX: 'f"starts_with({column}, {prefix!r})"',
}
"""Kind of condition -> the code with which a user filters by SQL, for values that are numbers or plain text."""


def arrow_expression(predicate: Predicate) -> pc.Expression:
    """Return the condition as an expression for pyarrow's data sets."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.field(predicate.column)
    if predicate.kind is Kind.NULL:
        return column.is_null()
    if predicate.kind is Kind.PREFIX:
        return pc.starts_with(column, pattern=predicate.values[0])
    values = predicate.present
    if predicate.kind is Kind.RANGE:
        return (column >= values[0]) & (column < values[1])
    if values and not _has_floats(values):
        return column.isin(list(values))
    # `isin` is not used for floats, because it distinguishes -0.0 from 0.0, and NaN equals itself.
    met = pc.scalar(pa.scalar(False))
    for value in values:
        met = met | (column == value)
    return met


def arrow_mask(column: pa.ChunkedArray, predicate: Predicate) -> pa.ChunkedArray:
    """Return a boolean column that is true in rows that match the condition, computed by pyarrow's functions.

    In rows where the column is null, the result is null, except for the condition `null`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if predicate.kind is Kind.NULL:
        return pc.is_null(column)
    if predicate.kind is Kind.PREFIX:
        return pc.starts_with(column, pattern=predicate.values[0])
    values = [pa.scalar(value, column.type) for value in predicate.present]
    if predicate.kind is Kind.RANGE:
        return pc.and_(pc.greater_equal(column, values[0]), pc.less(column, values[1]))
    # `is_in` is not used, because it distinguishes -0.0 from 0.0, and NaN equals itself.
    met = pc.and_(pc.is_valid(column), False)
    for value in values:
        met = pc.or_(met, pc.equal(column, value))
    return met


def polars_expression(predicate: Predicate, polars: Any) -> pl.Expr:
    """Return the condition as an expression for polars' lazy frames. `polars` is the loaded module.

    The column is selected by `by_name`, because otherwise polars would interpret names such as '*' or '^..$' as
    patterns."""
    column = polars.selectors.by_name(predicate.column).as_expr()
    if predicate.kind is Kind.NULL:
        return column.is_null()
    if predicate.kind is Kind.PREFIX:
        return column.str.starts_with(predicate.values[0])
    if predicate.kind is Kind.RANGE:
        low, high = predicate.values
        # For polars, NaN is above all other numbers.
        return polars.lit(False) if _is_nan(low) or _is_nan(high) else (column >= low) & (column < high)
    values = [value for value in predicate.present if not _is_nan(value)]
    if values and not _has_floats(values):
        return column.is_in(values)
    met = polars.lit(False)
    for value in values:
        met = met | (column == value)
    return met


def sql_condition(predicate: Predicate, name: str) -> str:
    """Return the condition as SQL for DuckDB. `name` is the quoted name of the column.

    Raises ValueError for a value that `sql_literal` cannot write."""
    if predicate.kind is Kind.NULL:
        return f"{name} IS NULL"
    if predicate.kind is Kind.PREFIX:
        return f"starts_with({name}, {sql_literal(predicate.values[0])})"
    if predicate.kind is Kind.RANGE:
        low, high = predicate.values
        # For DuckDB, NaN is above all other numbers.
        if _is_nan(low) or _is_nan(high):
            return "FALSE"
        return f"{name} >= {sql_literal(low)} AND {name} < {sql_literal(high)}"
    values = [sql_literal(value) for value in predicate.present if not _is_nan(value)]
    return f"{name} IN ({', '.join(values)})" if values else "FALSE"


def sql_literal(value: Any) -> str:
    """Return a value as an SQL literal. Raises ValueError for types other than bool, int, float, str, date and
    datetime."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)" if math.isinf(value) else f"CAST({value!r} AS DOUBLE)"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
        return f"{kind} '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise ValueError(f"no SQL literal is defined for a {type(value).__name__}")


def minus_zero(value: Any) -> Any:
    """Return -0.0 for 0.0 and -0.0, and any other value unchanged.

    Use this function for a lower bound, or an excluded upper bound, in libraries for which -0.0 is less than 0.0."""
    return -0.0 if isinstance(value, float) and value == 0 else value


def _has_floats(values: Any) -> bool:
    return any(isinstance(value, float) for value in values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
