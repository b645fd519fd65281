"""Whether what came back is what was stored: columns, types, rows, nulls, values, order.

Every column is compared whole, as Arrow or numpy buffers, one column at a time; Python sees single values only to
describe a difference. What pandas holds is looked at as Arrow too, after its dtype has been compared with the one
that the target demands. This module must not know any format: what a format may change arrives as losses.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from adapters.losses import Loss, Parse
from bench_runner import targets
from bench_runner.targets import Target, is_text

EXACT, DECLARED, DIFFERENT = "exact", "declared loss", "different"


@dataclass(frozen=True)
class Comparison:
    """outcome: 'exact' | 'declared loss' | 'different'; the losses that were seen; the problems, one a column."""

    outcome: str
    losses: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def compare(expected: pa.Table, got: Any, target: Target, losses: Sequence[Loss] = ()) -> Comparison:
    """Compare a DataFrame or Table with what was stored.

    A column that is not exact may have suffered `losses`: then it must be what their relations make of the expected
    column, exactly or within their tolerance.
    """
    problems = _shape_problems(expected, got, target)
    if problems:
        return Comparison(DIFFERENT, problems=problems)
    seen: dict[str, None] = {}
    wrong: list[str] = []
    for name in expected.column_names:
        stored = expected.column(name)
        problem = _compare_column(stored, got[name], target)
        if problem is None:
            continue
        suffered, lossy_problem = _compare_lossy(stored, got[name], target, losses)
        if lossy_problem is None and suffered:
            seen |= dict.fromkeys(loss.what for loss in suffered)
        else:
            wrong.append(f"{name} {lossy_problem or problem}")
    if wrong:
        return Comparison(DIFFERENT, tuple(seen), tuple(wrong))
    return Comparison(DECLARED if seen else EXACT, tuple(seen))


def _shape_problems(expected: pa.Table, got: Any, target: Target) -> tuple[str, ...]:
    wanted = pd.DataFrame if target.kind == "pandas" else pa.Table
    if not isinstance(got, wanted):
        return (f"came back as {type(got).__name__}, not as {wanted.__name__}",)
    names = list(got.columns) if target.kind == "pandas" else got.column_names
    if names != expected.column_names:
        return (f"columns: stored {expected.column_names}, came back {names}",)
    rows = len(got)
    if rows != expected.num_rows:
        return (f"rows: stored {expected.num_rows:,}, came back {rows:,}",)
    if target.kind == "pandas" and not _counts_rows(got.index):
        return ("index: came back as something else than 0 to the number of rows",)
    return ()


def _counts_rows(index: pd.Index) -> bool:
    return index.equals(pd.RangeIndex(len(index)))


# --- one column --------------------------------------------------------------------------------------------------

Same = Callable[[pa.ChunkedArray, pa.ChunkedArray], bool]


@dataclass(frozen=True)
class _Bound:
    """How far floats may be off: absolute + relative x the stored value."""

    absolute: float = 0.0
    relative: float = 0.0


def _compare_lossy(
    stored: pa.ChunkedArray, got: Any, target: Target, losses: Sequence[Loss]
) -> tuple[list[Loss], str | None]:
    """The losses that may have touched the column, and what is wrong even so."""
    suffered = []
    bound = _Bound()
    expected = stored
    for loss in losses:
        changed = loss.relation.expect(expected) if loss.holds_for(target.kind, target.strings, target.nulls) else None
        if changed is None:
            continue
        suffered.append(loss)
        expected = changed
        bound = _Bound(
            max(bound.absolute, loss.relation.tolerance), max(bound.relative, loss.relation.relative_tolerance)
        )
        target = replace(target, nulls=loss.relation.nulls or target.nulls)
        if loss.relation.parse is not None:
            # Once a column is text, no later loss can know what it was.
            return suffered, _compare_parsed(expected, got, target, loss.relation.parse)
    return suffered, _compare_column(expected, got, target, bound)


def _compare_parsed(expected: pa.ChunkedArray, got: Any, target: Target, parse: Parse) -> str | None:
    """What is wrong with a column that came back as text, or None."""
    as_text = expected.type if is_text(expected.type) else pa.large_string()
    if target.kind == "arrow":
        text = got
        if not is_text(got.type):
            return _describe(0, expected, got)
    else:
        dtype = demanded_dtype(pa.chunked_array([pa.array(["", None], as_text)]), target)
        if not _same_dtype(dtype, got.dtype):
            return _describe_series(expected, got, dtype)
        wrong = _wrong_classes(as_text, got) if target.strings == "object" else None
        if wrong:
            return wrong
        text = _chunked(pa.array(got.array, as_text, from_pandas=True))
    try:
        returned = parse(text.cast(as_text), expected.type)
    except (pa.ArrowException, SyntaxError, ValueError) as error:
        return f"came back as text that is no {expected.type}: {_few(str(error))}"
    return _compare_arrow(expected, returned, None)


def _compare_column(expected: pa.ChunkedArray, got: Any, target: Target, bound: _Bound | None = None) -> str | None:
    """What is wrong with a column, or None."""
    if target.kind == "pandas":
        return _compare_series(expected, got, target, bound)
    if not same_type(expected.type, got.type):
        return _describe(0, expected, got)
    return _compare_arrow(expected, got, bound)


def same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Method rule 11: the three kinds of text are equal, and of bytes; dictionary and plain are not.

    Dictionaries are equal by their values and order, whatever the width of their codes.
    """
    if pa.types.is_dictionary(one) and pa.types.is_dictionary(other):
        return one.ordered == other.ordered and same_type(one.value_type, other.value_type)
    if _is_list(one) and _is_list(other):
        return same_type(one.value_type, other.value_type)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return same_type(one.key_type, other.key_type) and same_type(one.item_type, other.item_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        names = [field.name for field in one] == [field.name for field in other]
        return names and all(same_type(left.type, right.type) for left, right in zip(one, other, strict=True))
    return one == other or (is_text(one) and is_text(other)) or (_is_bytes(one) and _is_bytes(other))


def _is_list(arrow_type: pa.DataType) -> bool:
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return arrow_type in (pa.binary(), pa.large_binary(), pa.binary_view())


def _compare_arrow(expected: pa.ChunkedArray, got: pa.ChunkedArray, bound: _Bound | None) -> str | None:
    """Nulls, values and order of two columns of equal types."""
    expected, got = _comparable(expected), _comparable(got)
    if expected.type != got.type:
        expected = expected.cast(got.type)
    same = _same_floats(bound or _Bound()) if pa.types.is_floating(expected.type) else pa.ChunkedArray.equals
    if same(expected, got):
        return None
    return _describe(_first_difference(expected, got, same), expected, got)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in the one of several equal types that all can be cast to without loss."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return column.cast(pa.large_string())
    if _is_bytes(column.type):
        return column.cast(pa.large_binary())
    return column


def _same_floats(bound: _Bound) -> Same:
    """Bit by bit, so that -0.0 is not 0.0; every NaN is equal to every other."""

    def same(expected: pa.ChunkedArray, got: pa.ChunkedArray) -> bool:
        if _bits(expected).equals(_bits(got)):
            return True
        if not expected.is_null().equals(got.is_null()):
            return False
        stored, returned = (column.drop_null().to_numpy(zero_copy_only=False) for column in (expected, got))
        off = stored.view(f"u{stored.itemsize}") != returned.view(f"u{returned.itemsize}")
        off &= ~(np.isnan(stored) & np.isnan(returned))
        if bound == _Bound():
            return not off.any()
        stored, returned = stored[off], returned[off]
        allowed = bound.absolute + bound.relative * np.abs(stored)
        return bool(np.isfinite(stored).all() and (np.abs(stored - returned) <= allowed).all())

    return same


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    integers = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[column.type.bit_width]
    return pa.chunked_array([chunk.view(integers) for chunk in column.chunks], integers)


def _first_difference(expected: pa.ChunkedArray, got: pa.ChunkedArray, same: Same) -> int:
    """The first row that differs, found by halving."""
    low, high = 0, len(expected)
    while high - low > 1:
        middle = (low + high) // 2
        if same(expected.slice(low, middle - low), got.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def _describe(row: int, expected: pa.ChunkedArray, got: pa.ChunkedArray) -> str:
    return (
        f"row {row}: stored {_few(expected[row])} ({expected.type}), came back {_few(got[row])} ({got.type})"
        if len(expected)
        else f"stored as {expected.type}, came back as {got.type}"
    )


def _few(value: Any) -> str:
    text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- one column of pandas ------------------------------------------------------------------------------------------

_ARRAYS = (np.ndarray, list)

_CLASSES: Sequence[tuple[Callable[[pa.DataType], bool], tuple[type, ...]]] = (
    (is_text, (str,)),
    (_is_bytes, (bytes,)),
    (pa.types.is_boolean, (bool,)),
    (pa.types.is_date, (dt.date,)),
    (pa.types.is_time, (dt.time,)),
    (pa.types.is_decimal, (decimal.Decimal,)),
    (_is_list, _ARRAYS),
    (pa.types.is_map, _ARRAYS),
    (pa.types.is_struct, (dict,)),
)
"""What the Python values in a column of objects must be, by exact class, besides what stands for missing."""

_MISSING = (type(None), float, type(pd.NA), type(pd.NaT))
"""A float is missing only when it is NaN, which the conversion to Arrow checks."""


def _compare_series(expected: pa.ChunkedArray, got: pd.Series, target: Target, bound: _Bound | None) -> str | None:
    dtype = demanded_dtype(expected, target)
    if not _same_dtype(dtype, got.dtype):
        return _describe_series(expected, got, dtype)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        wrong = _wrong_classes(expected.type, got)
        if wrong:
            return wrong
        try:
            returned = pa.array(_objects(expected.type, got), expected.type, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            return f"came back as objects that are no {expected.type}: {_few(str(error))}"
        return _compare_arrow(expected, _chunked(returned), bound)
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        # In numpy's floats a missing value is a NaN, and nothing tells them apart.
        expected = _floats(expected)
        return _compare_arrow(expected, _chunked(pa.array(got.to_numpy(copy=False))), bound)
    return _compare_arrow(expected, _chunked(pa.array(got.array, from_pandas=True)), bound)


def _objects(arrow_type: pa.DataType, got: pd.Series) -> Any:
    if not pa.types.is_map(arrow_type):
        return got.to_numpy(copy=False)
    # A pair may be a tuple or a list; pyarrow takes tuples alone.
    return [[tuple(pair) for pair in value] if isinstance(value, _ARRAYS) else None for value in got]


def _floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.float64(), safe=False)
    return pc.fill_null(column, pa.scalar(float("nan"), column.type)) if column.null_count else column


def _chunked(array: Any) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def demanded_dtype(column: pa.ChunkedArray, target: Target) -> Any:
    """The dtype that the target demands of a column, found on one of its values and, if it has any, a null."""
    valid = column.drop_null().slice(0, 1)
    few = valid.chunks or [pa.array([], column.type)]
    if column.null_count:
        few = [*few, pa.nulls(1, column.type)]
    if pa.types.is_dictionary(column.type):
        few = few[:1]
    return targets.make(pa.table({"value": pa.chunked_array(few, column.type)}), target).dtypes.iloc[0]


def _same_dtype(demanded: Any, found: Any) -> bool:
    if isinstance(demanded, pd.CategoricalDtype) and isinstance(found, pd.CategoricalDtype):
        return demanded.ordered == found.ordered and demanded.categories.dtype == found.categories.dtype
    if isinstance(demanded, pd.DatetimeTZDtype) and isinstance(found, pd.DatetimeTZDtype):
        return demanded.unit == found.unit and str(demanded.tz) == str(found.tz)
    return type(demanded) is type(found) and bool(demanded == found)


def _wrong_classes(arrow_type: pa.DataType, got: pd.Series) -> str | None:
    allowed = {*_MISSING, *next((classes for is_it, classes in _CLASSES if is_it(arrow_type)), (object,))}
    found = set(map(type, got.to_numpy(copy=False)))
    if found <= allowed:
        return None
    row, value = next((row, value) for row, value in enumerate(got) if type(value) not in allowed)
    return f"row {row}: stored a {arrow_type}, came back {_few(value)} ({type(value).__name__})"


def _describe_series(expected: pa.ChunkedArray, got: pd.Series, dtype: Any) -> str:
    if not len(expected):
        return f"stored as {dtype}, came back as {got.dtype}"
    row = next((row for row in range(min(len(expected), 100)) if expected[row].is_valid), 0)
    return f"row {row}: stored {_few(expected[row])} ({dtype}), came back {_few(got.iloc[row])} ({got.dtype})"
