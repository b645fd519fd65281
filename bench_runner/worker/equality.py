"""Decide whether two columns are equal. The expected column is an Arrow column. The column that was read is an Arrow
column, or the list of the Python objects in a pandas column.

The children of lists, structs and maps are compared by the same rules as columns. This module compares whole columns
and finds the first row that differs. It does not depend on losses, on formats, or on how differences are reported.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench_runner.operations.targets import is_text

BLOCK_ROWS = 131_072
"""Number of rows that are compared at a time, so that converted values fit into the processor's cache."""


@dataclass(frozen=True)
class Bound:
    """Largest allowed difference between floats: absolute + relative × absolute value of the stored float."""

    absolute: float = 0.0
    relative: float = 0.0


EXACTLY = Bound()


def first_difference(rows: int, same: Callable[[int, int], bool]) -> int | None:
    """Return the number of the first row that differs, or None. `same(start, stop)` returns whether a range of rows is
    equal."""
    for start in range(0, rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, rows)
        if not same(start, stop):
            return _halve(start, stop, same)
    return None


def _halve(low: int, high: int, same: Callable[[int, int], bool]) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle
    return low


# --- types ---------------------------------------------------------------------------------------------------------


def same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether two types count as equal (method rule 11).

    Arrow's three text types count as equal. So do Arrow's three types for bytes of variable length. A dictionary type
    differs from the type of its values. Two dictionary types count as equal if their value types count as equal, and if
    both are ordered or both are not. The integer type of the dictionary's codes does not matter.
    """
    if pa.types.is_dictionary(one) and pa.types.is_dictionary(other):
        return one.ordered == other.ordered and same_type(one.value_type, other.value_type)
    if _is_plain_list(one) and _is_plain_list(other):
        return same_type(one.value_type, other.value_type)
    if pa.types.is_fixed_size_list(one) and pa.types.is_fixed_size_list(other):
        return one.list_size == other.list_size and same_type(one.value_type, other.value_type)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return same_type(one.key_type, other.key_type) and same_type(one.item_type, other.item_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        names = [field.name for field in one] == [field.name for field in other]
        return names and all(same_type(left.type, right.type) for left, right in zip(one, other, strict=True))
    return one == other or (is_text(one) and is_text(other)) or (_is_bytes(one) and _is_bytes(other))


def _is_plain_list(arrow_type: pa.DataType) -> bool:
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


def _is_list(arrow_type: pa.DataType) -> bool:
    return _is_plain_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return arrow_type in (pa.binary(), pa.large_binary(), pa.binary_view())


# --- Arrow columns -------------------------------------------------------------------------------------------------


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column, cast without loss. Columns whose types count as equal are cast to the same type."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return column.cast(pa.large_string())
    if _is_bytes(column.type):
        return column.cast(pa.large_binary())
    if pa.types.is_map(column.type):
        return column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    return column


def _children(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Return the columns inside a nested column.

    For lists, this is a column with the items of all lists that are not null. For structs, these are the fields. In a
    row whose struct is null, each field is null. For maps, this is a column of the pairs, as structs. Return an empty
    list for a column that is not nested.
    """
    if pa.types.is_struct(column.type):
        return column.flatten()
    if _is_list(column.type) or pa.types.is_map(column.type):
        return [pc.list_flatten(comparable(column))]
    return []


def same_categories(expected: pa.ChunkedArray, got: pa.ChunkedArray) -> bool:
    """Return whether ordered dictionaries, at any depth, have the same values in the same order.

    Pass whole columns only, because each chunk may have a separate dictionary. Dictionaries that are not ordered are
    not compared. They are only another layout of the column's values, so unused entries do not matter.
    """
    if pa.types.is_dictionary(expected.type):
        return not expected.type.ordered or categories(expected).equals(categories(got))
    inside = zip(_children(expected), _children(got), strict=True)
    return all(same_categories(one, other) for one, other in inside)


def categories(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values in the dictionary of a column, in order. The dictionaries of the column's chunks are
    combined."""
    chunks = column.unify_dictionaries().chunks[:1]
    return comparable(pa.chunked_array([chunk.dictionary for chunk in chunks], column.type.value_type))


def same_values(expected: pa.ChunkedArray, got: pa.ChunkedArray, bound: Bound = EXACTLY) -> bool:
    """Return whether two columns of equal types have equal nulls and values, in the same order. Floats may differ by
    `bound`. With the default bound, all bits of floats must be equal, so that -0.0 differs from 0.0. All NaN values are
    equal."""
    expected, got = comparable(expected), comparable(got)
    if pa.types.is_nested(expected.type) and (inside := _children(expected)):
        if not expected.is_null().equals(got.is_null()):
            return False
        if _is_list(expected.type) and not _lengths(expected).equals(_lengths(got)):
            return False
        return all(same_values(one, other, bound) for one, other in zip(inside, _children(got), strict=True))
    if expected.type != got.type:
        expected = expected.cast(got.type)
    if pa.types.is_floating(expected.type):
        return _same_floats(expected, got, bound)
    return bool(expected.equals(got))


def _lengths(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.list_value_length(column).cast(pa.int64())


def _same_floats(expected: pa.ChunkedArray, got: pa.ChunkedArray, bound: Bound) -> bool:
    if _bits(expected).equals(_bits(got)):
        return True
    if not expected.is_null().equals(got.is_null()):
        return False
    stored, returned = (column.drop_null().to_numpy(zero_copy_only=False) for column in (expected, got))
    off = stored.view(f"u{stored.itemsize}") != returned.view(f"u{returned.itemsize}")
    off &= ~(np.isnan(stored) & np.isnan(returned))
    if bound == EXACTLY:
        return not off.any()
    stored, returned = stored[off], returned[off]
    allowed = bound.absolute + bound.relative * np.abs(stored)
    return bool(np.isfinite(stored).all() and (np.abs(stored - returned) <= allowed).all())


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    integers = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[column.type.bit_width]
    return pa.chunked_array([chunk.view(integers) for chunk in column.chunks], integers)


def as_numpy_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the numbers of a column as floats. Missing values become NaN, as in numpy."""
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.float64(), safe=False)
    return pc.fill_null(column, pa.scalar(float("nan"), column.type)) if column.null_count else column


# --- columns of Python objects -------------------------------------------------------------------------------------

_CLASSES: Sequence[tuple[Callable[[pa.DataType], bool], tuple[type, ...]]] = (
    (is_text, (str,)),
    (_is_bytes, (bytes,)),
    (pa.types.is_fixed_size_binary, (bytes,)),
    (pa.types.is_boolean, (bool,)),
    (pa.types.is_integer, (int,)),
    (pa.types.is_floating, (float,)),
    (pa.types.is_date, (dt.date,)),
    (pa.types.is_time, (dt.time,)),
    (pa.types.is_timestamp, (dt.datetime,)),
    (pa.types.is_duration, (dt.timedelta,)),
    (pa.types.is_decimal, (decimal.Decimal,)),
)
"""One pair for each group of Arrow types: a function that recognizes the types, and the classes that Python values of
these types may have in a pandas column. Objects of other classes count as different, even if the class is a
subclass."""

_SEPARATOR = "\0"


def is_missing(value: Any) -> bool:
    """Return whether pandas treats the value as missing in an object column. Such values are None, NaN, NA and NaT."""
    return value is None or value is pd.NA or value is pd.NaT or (type(value) is float and value != value)


def _is_none(value: Any) -> bool:
    return value is None


@dataclass(frozen=True)
class Nulls:
    """Whether a column has nulls in any of its rows, and the same for the columns inside a nested column. All rows must
    be examined, not only the rows that are compared: if any row has a null, pandas converts the integers of all rows to
    floats."""

    here: bool
    inside: tuple[Nulls, ...]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Nulls:
        """Return the nulls of a whole column. If a struct or a list of fixed size is null, pyarrow may or may not treat
        the values inside as null, too. In this case, the column inside counts as having nulls."""
        inside = tuple(map(cls.of, _children(column)))
        if pa.types.is_fixed_size_list(column.type) and column.null_count:
            inside = tuple(replace(child, here=True) for child in inside)
        return cls(column.null_count > 0, inside)


def same_objects(
    expected: pa.ChunkedArray,
    values: list[Any],
    nulls: Nulls,
    stands_for_null: Callable[[Any], bool] = is_missing,
    bound: Bound = EXACTLY,
) -> bool:
    """Return whether the Python values in `values` are the values that pandas would have for the Arrow column
    `expected`. `values` and `expected` have the same number of rows.

    Classes, nulls and values must be equal. `stands_for_null` returns whether a Python value represents a null. `bound`
    applies only to floats inside lists, because other floats of a pandas column are not compared as Python objects.
    """
    if expected.null_count:
        valid = expected.is_valid().to_numpy(zero_copy_only=False)
        if not all(map(stands_for_null, itertools.compress(values, (~valid).tolist()))):
            return False
        if pa.types.is_struct(expected.type):
            return _same_structs(expected, values, valid.tolist(), nulls)
        values = list(itertools.compress(values, valid.tolist()))
    elif pa.types.is_struct(expected.type):
        return _same_structs(expected, values, [True] * len(values), nulls)
    if pa.types.is_map(expected.type):
        return _same_maps(expected, values, nulls)
    if _is_list(expected.type):
        return _same_lists(expected, values, nulls, bound)
    return _same_scalars(expected, values, nulls, bound)


def _same_structs(expected: pa.ChunkedArray, values: list[Any], valid: list[bool], nulls: Nulls) -> bool:
    names = [field.name for field in expected.type]
    if any(type(value) is not dict or value.keys() != set(names) for value in itertools.compress(values, valid)):
        return False
    parts = zip(names, _children(expected), nulls.inside, strict=True)
    return all(
        same_objects(
            part, [value[name] if there else None for value, there in zip(values, valid, strict=True)], inside, _is_none
        )
        for name, part, inside in parts
    )


def _same_maps(expected: pa.ChunkedArray, values: list[Any], nulls: Nulls) -> bool:
    """Return whether Python values equal maps. A map must be a list of pairs, and a pair a tuple or a list."""
    if not _are_lists_of_lengths(expected, values):
        return False
    pairs = list(itertools.chain.from_iterable(values))
    if any(type(pair) not in (tuple, list) or len(pair) != 2 for pair in pairs):
        return False
    (entries,), (inside,) = _children(expected), nulls.inside
    return all(
        same_objects(part, [pair[place] for pair in pairs], part_nulls, _is_none)
        for place, (part, part_nulls) in enumerate(zip(_children(entries), inside.inside, strict=True))
    )


def _same_lists(expected: pa.ChunkedArray, values: list[Any], nulls: Nulls, bound: Bound) -> bool:
    """Return whether Python values equal lists. A value must be a numpy array with the dtype that pyarrow would choose.
    A list or an object array with the same items as Python objects is allowed, too."""
    if not _are_lists_of_lengths(expected, values):
        return False
    (child,), (inside,) = _children(expected), nulls.inside
    dtypes = {value.dtype for value in values if type(value) is np.ndarray}
    if not dtypes <= {np.dtype(object), *_dtypes_inside(expected.type, inside)}:
        return False
    if dtypes and np.dtype(object) not in dtypes and list not in map(type, values):
        return _same_array(child, np.concatenate(values), bound)
    flat = [item for value in values for item in (value.tolist() if type(value) is np.ndarray else value)]
    return same_objects(child, flat, inside, _is_none, bound)


def _are_lists_of_lengths(expected: pa.ChunkedArray, values: list[Any]) -> bool:
    if not set(map(type, values)) <= {np.ndarray, list}:
        return False
    if any(type(value) is np.ndarray and value.ndim != 1 for value in values):
        return False
    return bool(_lengths(comparable(expected)).drop_null().to_pylist() == list(map(len, values)))


def _dtypes_inside(list_type: pa.DataType, nulls: Nulls) -> set[np.dtype]:
    """Return the dtypes, other than object, that the arrays of a list column may have. There may be several dtypes,
    because pyarrow chooses the dtype of each chunk by whether the chunk has nulls."""
    if pa.types.is_nested(list_type.value_type) or pa.types.is_dictionary(list_type.value_type):
        return set()
    plain = pa.list_(list_type.value_type)
    few = [[], [None]] if nulls.here else [[]]
    return {pa.array([value], plain).to_pandas()[0].dtype for value in few}


def _same_array(expected: pa.ChunkedArray, array: np.ndarray, bound: Bound) -> bool:
    """Return whether a numpy array, whose dtype was checked before, equals a column."""
    expected = comparable(expected)
    if array.dtype.kind == "f":
        return same_values(as_numpy_floats(expected), pa.chunked_array([pa.array(array)]), bound)
    return same_values(expected, pa.chunked_array([pa.array(array, expected.type, from_pandas=True)]))


def _same_scalars(expected: pa.ChunkedArray, values: list[Any], nulls: Nulls, bound: Bound) -> bool:
    expected = _as_python_has_it(comparable(expected)).drop_null()
    found = list(map(type, values))
    allowed = next((classes for is_it, classes in _CLASSES if is_it(expected.type)), ())
    if nulls.here and pa.types.is_integer(expected.type) and float in found:
        allowed = (int, float)
        expected, values = expected.cast(pa.float64(), safe=False), list(map(float, values))
    if sum(map(found.count, allowed)) != len(values):
        return False
    if is_text(expected.type):
        return _same_text(expected, values)
    if pa.types.is_timestamp(expected.type) or pa.types.is_duration(expected.type):
        # pyarrow would silently drop time zones, and digits below the unit.
        return list(map(_zoned, values)) == list(map(_zoned, expected.to_pylist()))
    return _same_converted(expected, values, bound)


def _as_python_has_it(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column cast to an Arrow type that holds exactly what the Python class for the column's type can
    hold."""
    if pa.types.is_floating(column.type):
        return column.cast(pa.float64())
    if pa.types.is_time(column.type):
        return column.cast(pa.time64("us"), safe=False)
    if column.type == pa.duration("ns") or (pa.types.is_timestamp(column.type) and column.type.unit == "ns"):
        return column.cast(pa.int64())  # datetime has no nanoseconds, so pandas has integers here
    return column


def _zoned(value: dt.datetime | dt.timedelta) -> tuple[dt.datetime | dt.timedelta, str]:
    return value, str(getattr(value, "tzinfo", None))


def _same_text(expected: pa.ChunkedArray, values: list[str]) -> bool:
    """Return whether Python strings equal a text column. The Python strings are joined to one string, and the strings
    of the column to another. Comparing the two joined strings takes less than half the time of converting the Python
    strings to Arrow. The comparison is valid only if no value contains the separator. To check this, the separators in
    the joined string are counted."""
    if not values:
        return True
    if expected.nbytes + len(values) >= 2**31:  # more than pyarrow can join
        return _same_converted(expected, values)
    text = expected.cast(pa.string()).combine_chunks()
    row = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
    joined = pc.binary_join(row, _SEPARATOR)[0].as_py()
    if joined.count(_SEPARATOR) != len(values) - 1:
        return _same_converted(expected, values)
    return _SEPARATOR.join(values) == joined


def _same_converted(expected: pa.ChunkedArray, values: list[Any], bound: Bound = EXACTLY) -> bool:
    try:
        returned = pa.array(values, expected.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return same_values(expected, pa.chunked_array([returned]), bound)
