"""Every fault that is planted is found, also inside a lossy column; what is equal by method rule 11 passes."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adapters import relations
from adapters.losses import Cause, Loss, Relation
from bench_runner import targets
from bench_runner.targets import Target
from bench_runner.verify import Comparison, compare

ARROW, PANDAS = Target("arrow"), Target("pandas")
LAST_ROW = 49

STORED = pa.table(
    {
        "label": pa.array(range(50), pa.int64()),
        "share": pa.array([row / 7 for row in range(50)], pa.float64()),
        "word": pa.array([None if row == 17 else f"w{row}" for row in range(50)], pa.string()),
        "count": pa.array([None if row == 3 else row for row in range(50)], pa.int32()),
        "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(row) for row in range(50)], pa.date32()),
        "price": pa.array([Decimal(row) / 4 for row in range(50)], pa.decimal128(8, 2)),
        "at": pa.array(range(50), pa.timestamp("us", "Europe/Prague")),
        "pair": pa.array([[row, -row] for row in range(50)], pa.list_(pa.int64())),
    }
)


@pytest.fixture(params=["pandas", "arrow"])
def target(request: pytest.FixtureRequest) -> Target:
    found = Target(request.param)
    targets.apply_strings(found)
    return found


def replaced(name: str, column: Any) -> pa.Table:
    return STORED.set_column(STORED.column_names.index(name), name, column)


def with_value(name: str, row: int, value: Any) -> pa.Table:
    values = STORED.column(name).to_pylist()
    values[row] = value
    return replaced(name, pa.array(values, STORED.column(name).type))


def verdict(came_back: pa.Table, target: Target, losses: tuple[Loss, ...] = ()) -> Comparison:
    return compare(STORED, targets.make(came_back, target), target, losses)


def test_what_was_stored_is_exact(target: Target) -> None:
    assert verdict(STORED, target) == Comparison("exact")


def test_other_chunks_are_equal(target: Target) -> None:
    assert verdict(pa.concat_tables([STORED.slice(0, 9), STORED.slice(9)]), target).outcome == "exact"


def test_a_dropped_last_row_is_found(target: Target) -> None:
    assert verdict(STORED.slice(0, LAST_ROW), target).problems == ("rows: stored 50, came back 49",)


def test_two_swapped_rows_are_found(target: Target) -> None:
    order = [*range(20), 21, 20, *range(22, 50)]
    problems = verdict(STORED.take(order), target).problems
    assert len(problems) == STORED.num_columns
    assert problems[0] == "label row 20: stored 20 (int64), came back 21 (int64)"


def test_columns_in_another_order_are_found(target: Target) -> None:
    assert "columns" in verdict(STORED.select(STORED.column_names[::-1]), target).problems[0]


def test_integers_become_floats_are_found(target: Target) -> None:
    (problem,) = verdict(replaced("label", STORED["label"].cast(pa.float64())), target).problems
    assert problem.startswith("label row 0: stored 0 (int64), came back ")
    assert "float64" in problem or "double" in problem


def test_none_become_empty_text_is_found(target: Target) -> None:
    (problem,) = verdict(with_value("word", 17, ""), target).problems
    assert problem == "word row 17: stored None (large_string), came back '' (large_string)"


@pytest.mark.parametrize("name", STORED.column_names)
def test_the_last_value_is_compared(name: str, target: Target) -> None:
    (problem,) = verdict(with_value(name, LAST_ROW, STORED[name][LAST_ROW - 2].as_py()), target).problems
    assert problem.startswith(f"{name} row {LAST_ROW}: stored ")


@pytest.mark.parametrize("name", STORED.column_names)
def test_a_value_that_became_null_is_found(name: str, target: Target) -> None:
    assert len(verdict(with_value(name, 30, None), target).problems) == 1


def test_a_label_of_text_is_described() -> None:
    (problem,) = verdict(replaced("label", STORED["label"].cast(pa.string())), ARROW).problems
    assert problem == "label row 0: stored 0 (int64), came back '0' (string)"


# --- floats ------------------------------------------------------------------------------------------------------


def floats(*values: float | None) -> pa.Table:
    return pa.table({"f": pa.array(values, pa.float64())})


def same_floats(stored: pa.Table, got: pa.Table, target: Target) -> bool:
    return compare(stored, targets.make(got, target), target).outcome == "exact"


def test_the_sign_of_zero_counts(target: Target) -> None:
    assert same_floats(floats(0.0, -0.0), floats(0.0, -0.0), target)
    assert not same_floats(floats(0.0, -0.0), floats(0.0, 0.0), target)


def test_every_nan_equals_every_other(target: Target) -> None:
    negative_nan = np.array([1.0, np.nan]).view(np.uint64) | np.array([0, 1 << 63], np.uint64)
    got = pa.table({"f": pa.array(negative_nan.view(np.float64))})
    assert same_floats(floats(1.0, float("nan")), got, target)


def test_one_bit_counts(target: Target) -> None:
    assert not same_floats(floats(1.0), floats(np.nextafter(1.0, 2.0)), target)


def test_null_and_nan_are_told_apart_where_the_target_can() -> None:
    assert not same_floats(floats(1.0, None), floats(1.0, float("nan")), ARROW)
    assert same_floats(floats(1.0, None), floats(1.0, float("nan")), PANDAS)


# --- types ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [pa.large_string(), pa.string_view()])
def test_the_kinds_of_text_are_equal(text: pa.DataType) -> None:
    assert verdict(replaced("word", STORED["word"].cast(text)), ARROW).outcome == "exact"


def test_dictionary_and_plain_are_not_equal(target: Target) -> None:
    assert len(verdict(replaced("word", STORED["word"].dictionary_encode()), target).problems) == 1


def test_the_zone_counts(target: Target) -> None:
    other = replaced("at", STORED["at"].cast(pa.timestamp("us", "UTC")))
    assert len(verdict(other, target).problems) == 1


def test_numpy_for_masked_is_found() -> None:
    frame = targets.make(STORED, PANDAS).astype({"count": "float64"})
    (problem,) = compare(STORED, frame, PANDAS).problems
    assert problem == "count row 0: stored 0 (Int32), came back np.float64(0.0) (float64)"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("day", dt.datetime(2024, 1, 6)), ("price", 1.25), ("day", "2024-01-06"), ("pair", "[5 -5]")],
)
def test_objects_of_another_class_are_found(name: str, wrong: Any) -> None:
    frame = targets.make(STORED, PANDAS)
    column = frame[name].copy()
    column[5] = wrong
    frame[name] = column
    assert len(compare(STORED, frame, PANDAS).problems) == 1


def test_text_as_bytes_is_found() -> None:
    objects = Target("pandas", strings="object")
    targets.apply_strings(objects)
    frame = targets.make(STORED, objects)
    assert compare(STORED, frame, objects).outcome == "exact"
    frame["word"] = frame["word"].map(lambda word: word.encode() if word else None)
    problem = compare(STORED, frame, objects).problems[0]
    assert problem == "word row 0: stored a string, came back b'w0' (bytes)"


def test_another_index_is_found() -> None:
    frame = targets.make(STORED, PANDAS)
    frame.index = pd.RangeIndex(1, 51)
    assert "index" in compare(STORED, frame, PANDAS).problems[0]


def test_the_wrong_container_is_found() -> None:
    assert "DataFrame" in compare(STORED, targets.make(STORED, PANDAS), ARROW).problems[0]


# --- losses --------------------------------------------------------------------------------------------------------


def loss(relation: Relation, **rest: Any) -> Loss:
    return Loss("it changes", "only so much", Cause.CALL, relation, frozenset({"float64"}), **rest)


TEN_DECIMALS = loss(Relation(relations.floats, tolerance=1e-10))


def rounded(decimals: int) -> pa.Table:
    return replaced("share", pa.array([round(value, decimals) for value in STORED["share"].to_pylist()]))


def test_a_declared_loss_within_its_bound(target: Target) -> None:
    assert verdict(rounded(10), target, (TEN_DECIMALS,)) == Comparison("declared loss", ("it changes",))


def test_a_declared_loss_outside_its_bound(target: Target) -> None:
    assert verdict(rounded(8), target, (TEN_DECIMALS,)).outcome == "different"


def test_a_declared_loss_that_does_not_occur_is_exact(target: Target) -> None:
    assert verdict(STORED, target, (TEN_DECIMALS,)) == Comparison("exact")


@pytest.mark.parametrize("wrong", [None, 1e300, float("inf"), 4.2])
def test_a_fault_in_a_lossy_column_is_found(wrong: float | None, target: Target) -> None:
    values = rounded(10)["share"].to_pylist()
    values[40] = wrong
    (problem,) = verdict(replaced("share", pa.array(values)), target, (TEN_DECIMALS,)).problems
    assert problem.startswith("share row 40: stored 5.714285714285714 (double), came back ")


def test_swapped_rows_in_a_lossy_column_are_found(target: Target) -> None:
    values = rounded(10)["share"].to_pylist()
    values[8], values[9] = values[9], values[8]
    assert verdict(replaced("share", pa.array(values)), target, (TEN_DECIMALS,)).outcome == "different"


def test_a_loss_of_another_target_is_none(target: Target) -> None:
    other = loss(Relation(relations.floats, tolerance=1e-10), targets=frozenset({"neither"}))
    assert verdict(rounded(10), target, (other,)).outcome == "different"


AS_TEXT = loss(Relation(relations.written_as_text, parse=relations.parse_text))


def test_text_that_stands_for_the_values(target: Target) -> None:
    days = pa.array([str(day) for day in STORED["day"].to_pylist()])
    assert verdict(replaced("day", days), target, (AS_TEXT,)).outcome == "declared loss"


@pytest.mark.parametrize("wrong", ["2024-03-01", "soon", None])
def test_text_that_stands_for_others(wrong: str | None, target: Target) -> None:
    days = [str(day) for day in STORED["day"].to_pylist()]
    days[30] = wrong
    assert verdict(replaced("day", pa.array(days)), target, (AS_TEXT,)).outcome == "different"
