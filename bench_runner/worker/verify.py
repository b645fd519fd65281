"""Compare a table that was read with the stored table: columns, types, rows, nulls, values and order.

Columns are compared one at a time, with all of their rows. A pandas column must have the dtype that the target demands.
Then bench_runner.worker.equality compares the values of the column, as Arrow data or as Python objects. This module
does not depend on formats. Callers pass the changes that a format may make to values as losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from adapters.losses import Loss, Parse
from bench_runner.operations import targets
from bench_runner.operations.targets import Target, is_text
from bench_runner.worker import equality
from bench_runner.worker.equality import EXACTLY, Bound, same_type
from bench_runner.worker.names import columns_differ, quoted


class Mismatch(Exception):
    """Raised if data that were read or written are not as expected."""


EXACT, DECLARED, DIFFERENT = "exact", "declared loss", "different"


@dataclass(frozen=True)
class ColumnComparison:
    """The result of comparing tables. `outcome` is 'exact', 'declared loss' or 'different', `losses` are the declared
    losses that occurred, and `problems` has a description for each wrong column."""

    outcome: str
    losses: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def compare(
    expected: pa.Table, got: Any, target: Target, losses: Sequence[Loss] = (), rows: np.ndarray | None = None
) -> ColumnComparison:
    """Return how a DataFrame or Table differs from the stored table `expected`. If `rows` is given, only the rows with
    these numbers are expected.

    A column that is not equal may still be right because of the declared `losses`. Each loss is a function that
    computes from the stored column what the format returns. The column that was read must equal the computed column,
    exactly or within the tolerance of the loss. A loss is applied to the whole column, because the effect on one value
    may depend on the other values.
    """
    chosen = None if rows is None else pa.array(rows, pa.int64())
    problems = _shape_problems(expected, got, target, expected.num_rows if rows is None else len(rows))
    if problems:
        return ColumnComparison(DIFFERENT, problems=problems)
    seen: dict[str, None] = {}
    wrong: list[str] = []
    for name in expected.column_names:
        stored = expected.column(name)
        problem = _compare_column(_chosen(stored, chosen), got[name], target, whole=stored)
        if problem is None:
            continue
        suffered, lossy_problem = _compare_lossy(stored, got[name], target, losses, chosen)
        if chosen is not None and (lossy_problem is not None or not suffered):
            # The effect of a loss may depend on the values of only these rows, for example if all values are missing.
            suffered, lossy_problem = _compare_lossy(stored.take(chosen), got[name], target, losses, None)
        if lossy_problem is None and suffered:
            seen |= dict.fromkeys(loss.what for loss in suffered)
        else:
            wrong.append(f"{quoted(name)} {lossy_problem or problem}")
    if wrong:
        return ColumnComparison(DIFFERENT, tuple(seen), tuple(wrong))
    return ColumnComparison(DECLARED if seen else EXACT, tuple(seen))


def _shape_problems(expected: pa.Table, got: Any, target: Target, wanted_rows: int) -> tuple[str, ...]:
    wanted = pd.DataFrame if target.kind == "pandas" else pa.Table
    if not isinstance(got, wanted):
        return (f"came back as {type(got).__name__}, not as {wanted.__name__}",)
    names = list(got.columns) if target.kind == "pandas" else got.column_names
    if names != expected.column_names:
        return (columns_differ(expected.column_names, list(names)),)
    rows = len(got)
    if rows != wanted_rows:
        return (f"rows: stored {wanted_rows:,}, came back {rows:,}",)
    if target.kind == "pandas" and not _counts_rows(got.index):
        return ("index: came back as something other than the default one, integers from 0 without a name",)
    return ()


def _counts_rows(index: pd.Index) -> bool:
    integers = isinstance(index.dtype, np.dtype) and index.dtype.kind in "iu"
    return index.name is None and integers and index.equals(pd.RangeIndex(len(index)))


# --- one column --------------------------------------------------------------------------------------------------


def _compare_lossy(
    stored: pa.ChunkedArray, got: Any, target: Target, losses: Sequence[Loss], rows: pa.Array | None
) -> tuple[list[Loss], str | None]:
    """Return the losses that may apply to the column, and a description of the difference that these losses do not
    explain. The description is None if there is no such difference."""
    suffered = []
    bound = EXACTLY
    expected = stored
    for loss in losses:
        changed = loss.relation.expect(expected) if loss.holds_for(target.kind, target.strings, target.nulls) else None
        if changed is None:
            continue
        suffered.append(loss)
        expected = changed
        bound = Bound(
            max(bound.absolute, loss.relation.tolerance), max(bound.relative, loss.relation.relative_tolerance)
        )
        relation = loss.relation
        target = replace(target, nulls=relation.nulls or target.nulls, strings=relation.strings or target.strings)
        if loss.relation.parse is not None:
            # Further losses cannot apply, because the type of a column that became text is unknown.
            return suffered, _compare_parsed(_chosen(expected, rows), got, target, loss.relation.parse)
    return suffered, _compare_column(_chosen(expected, rows), got, target, bound, whole=expected)


def _chosen(column: pa.ChunkedArray, rows: pa.Array | None) -> pa.ChunkedArray:
    return column if rows is None else column.take(rows)


def _compare_parsed(expected: pa.ChunkedArray, got: Any, target: Target, parse: Parse) -> str | None:
    """Return what is wrong with a column that was read as text, or None."""
    as_text = expected.type if is_text(expected.type) else pa.large_string()
    if target.kind == "arrow":
        text = got
        if not is_text(got.type):
            return _describe(0, expected, got)
    else:
        dtype = demanded_dtype(pa.chunked_array([pa.array(["", None], as_text)]), target)
        if not _same_dtype(dtype, got.dtype):
            return _describe_series(expected, got, dtype)
        for row, value in enumerate(got.array):
            if type(value) is not str and not equality.is_missing(value):
                return f"row {row}: stored text, came back {_few(value)} ({type(value).__name__})"
        text = _chunked(pa.array(got.array, as_text, from_pandas=True))
    try:
        returned = parse(text.cast(as_text), expected.type)
    except (pa.ArrowException, SyntaxError, ValueError) as error:
        return f"came back as text that is not of type {expected.type}: {_few(str(error))}"
    return _compare_arrow(expected, returned, EXACTLY)


def _compare_column(
    expected: pa.ChunkedArray, got: Any, target: Target, bound: Bound = EXACTLY, *, whole: pa.ChunkedArray
) -> str | None:
    """Return what is wrong with a column, or None. `expected` may be some rows of the column `whole`."""
    if target.kind == "pandas":
        return _compare_series(expected, got, target, bound, whole)
    if not same_type(expected.type, got.type):
        return _describe(0, expected, got)
    return _compare_arrow(expected, got, bound)


def _compare_arrow(expected: pa.ChunkedArray, got: pa.ChunkedArray, bound: Bound) -> str | None:
    """Return what is wrong with the nulls, values or order of a column whose type is known to be equal. Return None if
    nothing is wrong."""
    if not equality.same_categories(expected, got):
        return _describe_categories(expected, got)

    def same(start: int, stop: int) -> bool:
        return equality.same_values(expected[start:stop], got[start:stop], bound)

    row = equality.first_difference(len(expected), same)
    # Show both values in the same type, because a difference between types that count as equal is not the problem.
    return None if row is None else _describe(row, equality.comparable(expected), equality.comparable(got))


def _describe(row: int, expected: pa.ChunkedArray, got: pa.ChunkedArray) -> str:
    if not len(expected):
        return f"stored as {expected.type}, came back as {got.type}"
    return f"row {row}: stored {_few(expected[row])} ({expected.type}), came back {_few(got[row])} ({got.type})"


def _describe_categories(expected: pa.ChunkedArray, got: pa.ChunkedArray) -> str:
    if not pa.types.is_dictionary(expected.type):
        return f"came back with other ordered categories inside ({expected.type})"
    stored, returned = (equality.categories(column).to_pylist() for column in (expected, got))
    return f"ordered categories: stored {_few(stored)}, came back {_few(returned)}"


def _few(value: Any) -> str:
    text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- one column of pandas ------------------------------------------------------------------------------------------


def _compare_series(
    expected: pa.ChunkedArray, got: pd.Series, target: Target, bound: Bound, whole: pa.ChunkedArray
) -> str | None:
    dtype = demanded_dtype(expected, target)
    if not _same_dtype(dtype, got.dtype):
        # Some rows of a column with nulls may have none. Formats then return the dtype of these rows, or that of the
        # column, and both are right.
        whole_dtype = demanded_dtype(whole, target)
        if not _same_dtype(whole_dtype, got.dtype):
            return _describe_series(expected, got, dtype)
        dtype = whole_dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return _compare_objects(expected, got.to_numpy(copy=False), bound)
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        # Pass a numpy array, which pyarrow takes unchanged. In a pandas array, pyarrow would look for missing values.
        returned = _chunked(pa.array(got.to_numpy(copy=False)))
        return _compare_arrow(equality.as_numpy_floats(expected), returned, bound)
    returned = _chunked(pa.array(got.array, from_pandas=True))
    if pa.types.is_dictionary(returned.type) and pa.types.is_null(returned.type.value_type):
        # A categorical column without categories has the demanded dtype, but no Arrow type.
        returned = pa.chunked_array([pa.nulls(len(returned), expected.type)])
    return _compare_arrow(expected, returned, bound)


def _compare_objects(expected: pa.ChunkedArray, got: np.ndarray, bound: Bound) -> str | None:
    nulls = equality.Nulls.of(expected)

    def same(start: int, stop: int) -> bool:
        return equality.same_objects(expected[start:stop], got[start:stop].tolist(), nulls, bound=bound)

    row = equality.first_difference(len(expected), same)
    if row is None:
        return None
    value = got[row]
    return (
        f"row {row}: stored {_few(expected[row])} ({expected.type}), came back {_few(value)} ({type(value).__name__})"
    )


def _chunked(array: Any) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def demanded_dtype(column: pa.ChunkedArray, target: Target) -> Any:
    """Return the pandas dtype that the target demands of a column. It depends on the column's type, on whether a column
    of integers or booleans has nulls, and on the values of a dictionary."""
    with_null = column.null_count > 0 and column.type in targets.MASKED_DTYPES
    if not pa.types.is_dictionary(column.type):
        return _dtype_of_none(column.type, with_null, target)
    first_valid = pc.index(column.is_valid(), True).as_py()
    one = column[first_valid : first_valid + 1] if first_valid >= 0 else pa.chunked_array([], column.type)
    return _dtype_of(one, target)


@cache
def _dtype_of_none(arrow_type: pa.DataType, with_null: bool, target: Target) -> Any:
    return _dtype_of(pa.chunked_array([pa.nulls(int(with_null), arrow_type)]), target)


def _dtype_of(column: pa.ChunkedArray, target: Target) -> Any:
    return targets.make(pa.table({"value": column}), target).dtypes.iloc[0]


def _same_dtype(demanded: Any, found: Any) -> bool:
    if isinstance(demanded, pd.CategoricalDtype) and isinstance(found, pd.CategoricalDtype):
        return demanded.ordered == found.ordered and demanded.categories.dtype == found.categories.dtype
    if isinstance(demanded, pd.DatetimeTZDtype) and isinstance(found, pd.DatetimeTZDtype):
        return demanded.unit == found.unit and str(demanded.tz) == str(found.tz)
    return type(demanded) is type(found) and bool(demanded == found)


def _describe_series(expected: pa.ChunkedArray, got: pd.Series, dtype: Any) -> str:
    if not len(expected):
        return f"stored as {dtype}, came back as {got.dtype}"
    row = next((row for row in range(min(len(expected), 100)) if expected[row].is_valid), 0)
    return f"row {row}: stored {_few(expected[row])} ({dtype}), came back {_few(got.iloc[row])} ({got.dtype})"
