"""The meaning of conditions, and the choice of a condition for given data."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from adapters.contract import Native, Records
from adapters.errors import RefusedData
from adapters.predicate import Kind, Predicate
from bench_runner.operations.tables import predicates, selection
from bench_runner.operations.tables.predicates import choose, mask

FLOATS = [math.nan, -0.0, 0.0, 1.5, None, -math.inf, math.inf]
WORDS = ["", "ab", "abc", "b", None, "Größe"]


def met(values: list[Any], kind: Kind, *of: Any) -> list[int]:
    """Return the indices of the values that meet a condition."""
    found = mask(pa.chunked_array([values[:2], values[2:]]), Predicate("x", kind, of))
    assert found.null_count == 0
    return np.flatnonzero(found.to_numpy()).tolist()


@pytest.mark.parametrize(
    ("values", "kind", "of", "places"),
    [
        (FLOATS, Kind.RANGE, (-1.0, 2.0), [1, 2, 3]),
        (FLOATS, Kind.RANGE, (0.0, 2.0), [1, 2, 3]),
        (FLOATS, Kind.RANGE, (-math.inf, 0.0), [5]),
        (FLOATS, Kind.RANGE, (1.5, math.inf), [3]),
        (FLOATS, Kind.EQUAL, (0.0,), [1, 2]),
        (FLOATS, Kind.EQUAL, (-0.0,), [1, 2]),
        (FLOATS, Kind.EQUAL, (math.nan,), []),
        (FLOATS, Kind.IN, (math.nan, -0.0, None), [1, 2]),
        (FLOATS, Kind.IN, (None,), []),
        (FLOATS, Kind.NULL, (), [4]),
        (WORDS, Kind.EQUAL, ("",), [0]),
        (WORDS, Kind.PREFIX, ("ab",), [1, 2]),
        (WORDS, Kind.PREFIX, ("Gr",), [5]),
        (WORDS, Kind.PREFIX, ("",), [0, 1, 2, 3, 5]),
        (WORDS, Kind.NULL, (), [4]),
        ([3, None, 1, 2], Kind.RANGE, (1, 3), [2, 3]),
        ([3, None, 1, 2], Kind.IN, (3, None, 2), [0, 3]),
    ],
)
def test_a_condition_has_one_meaning(values: list[Any], kind: Kind, of: tuple[Any, ...], places: list[int]) -> None:
    assert met(values, kind, *of) == places


@pytest.mark.parametrize(
    ("kind", "values"),
    [(Kind.RANGE, (1,)), (Kind.EQUAL, ()), (Kind.EQUAL, (None,)), (Kind.NULL, (1,)), (Kind.IN, ()), (Kind.PREFIX, ())],
)
def test_a_condition_without_a_meaning_is_none(kind: Kind, values: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=kind.value):
        Predicate("x", kind, values)


@pytest.mark.parametrize("native", [Native.ARROW, Native.PANDAS, Native.POLARS, Native.RECORDS])
@pytest.mark.parametrize("kind", Kind)
def test_what_is_read_whole_is_filtered_equally_by_every_library(native: Native, kind: Kind) -> None:
    # Null and NaN are the same in pandas' floats, so floats have no nulls here.
    table = pa.table({"i": [1, 2, None, 2], "s": ["ab", None, "b", "abc"], "f": [0.5, -0.0, math.nan, 1.0]})
    values = {
        Kind.RANGE: ("f", (0.0, 1.0)),
        Kind.EQUAL: ("i", (2,)),
        Kind.IN: ("s", ("b", None)),
        Kind.NULL: ("s", ()),
        Kind.PREFIX: ("s", ("ab",)),
    }
    column, given = values[kind]
    predicate = Predicate(column, kind, given)
    held: Any = {
        Native.ARROW: table,
        Native.PANDAS: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
        Native.POLARS: pl.from_arrow(table),
        Native.RECORDS: Records(table.schema, iter(table.to_pylist())),
    }[native]
    got = selection.matching(held, native, predicate, ["s", "i"])
    rows = np.flatnonzero(mask(table.column(column), predicate).to_numpy())
    wanted = table.take(pa.array(rows)).select(["s", "i"])
    assert as_rows(got, native) == wanted.to_pylist()


@pytest.mark.parametrize("native", [Native.ARROW, Native.PANDAS, Native.POLARS, Native.RECORDS])
def test_what_is_read_whole_gives_rows_in_the_order_asked(native: Native) -> None:
    table = pa.table({"i": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})
    held: Any = {
        Native.ARROW: table,
        Native.PANDAS: table.to_pandas(),
        Native.POLARS: pl.from_arrow(table),
        Native.RECORDS: Records(table.schema, iter(table.to_pylist())),
    }[native]
    got = selection.rows_of(held, native, np.array([3, 0, 3], np.int64))
    assert as_rows(got, native) == table.take([3, 0, 3]).to_pylist()


def as_rows(held: Any, native: Native) -> list[dict[str, Any]]:
    if native is Native.RECORDS:
        return [dict(row) for row in held.rows]
    if native is Native.PANDAS:
        return pa.Table.from_pandas(held, preserve_index=False).to_pylist()
    return (held if native is Native.ARROW else held.to_arrow()).to_pylist()


# --- choosing a condition --------------------------------------------------------------------------------------------


def data(rows: int = 10_000) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "row": pa.array(range(rows), pa.int64()),
            "number": random.permutation(rows),
            "few": [f"value {value}" for value in random.integers(0, 100, rows)],
            "missing": pa.array([None if value < 0.05 else value for value in random.random(rows)]),
            "when": pa.array([datetime(2020, 1, 1)] * rows, pa.timestamp("us")),
            "constant": ["same"] * rows,
            "nothing": pa.nulls(rows, pa.float64()),
            "lists": [[1]] * rows,
        }
    )


@pytest.mark.parametrize("selectivity", [0.0001, 0.001, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("stored", ["sorted", "shuffled"])
def test_a_range_gives_the_share_asked_for(selectivity: float, stored: str) -> None:
    found = choose(data(), Kind.RANGE, selectivity, stored=stored, digest="9f2c")
    assert 0.9 <= found.rows / (selectivity * 10_000) <= 1.1
    assert (found.predicate.column == "row") == (stored == "sorted")
    assert found.rows == np.count_nonzero(mask(data().column(found.predicate.column), found.predicate).to_numpy())


@pytest.mark.parametrize(
    ("kind", "selectivity", "column"),
    [(Kind.EQUAL, 0.01, "few"), (Kind.IN, 0.1, "few"), (Kind.NULL, 0.05, "missing"), (Kind.PREFIX, 0.1, "few")],
)
def test_other_conditions_give_about_the_share_asked_for(kind: Kind, selectivity: float, column: str) -> None:
    found = choose(data(), kind, selectivity, stored="shuffled", digest="9f2c")
    assert found.predicate.column == column
    assert 0.5 <= found.rows / (selectivity * 10_000) <= 2.0


def test_what_the_data_cannot_give_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        RefusedData, match=r"no shuffled column .* null .* 0\.3 .* the nearest share is \S+, on column "
    ):
        choose(data(), Kind.NULL, 0.3, stored="shuffled", digest="9f2c")
    with pytest.raises(RefusedData, match=r"no sorted column .* prefix"):
        choose(data(), Kind.PREFIX, 0.1, stored="sorted", digest="9f2c")


def test_the_same_data_has_the_same_condition() -> None:
    first = choose(data(), Kind.EQUAL, 0.01, stored="shuffled", digest="9f2c")
    assert first == choose(data(), Kind.EQUAL, 0.01, stored="shuffled", digest="9f2c")


def test_values_that_are_the_same_are_not_sorted() -> None:
    assert not predicates._is_sorted(pa.array([1, 1, 1]))
    assert not predicates._is_sorted(pa.array([1, None, 2]))
    assert not predicates._is_sorted(pa.array([1, 3, 2]))
    assert predicates._is_sorted(pa.array([1, 1, 2]))
