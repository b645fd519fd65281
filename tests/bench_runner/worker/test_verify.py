"""Every planted fault is found, also in a lossy column. Values that are equal by method rule 11 pass."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adapters.losses import Cause, Loss, Relation
from adapters.relations import written
from adapters.relations.floats import any_floats
from adapters.relations.lists import vectors_as_lists_of_float64
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from bench_runner.worker.verify import ColumnComparison, compare
from formats.shared import pandas_losses

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


def verdict(came_back: pa.Table, target: Target, losses: tuple[Loss, ...] = ()) -> ColumnComparison:
    return compare(STORED, targets.make(came_back, target), target, losses)


def test_what_was_stored_is_exact(target: Target) -> None:
    assert verdict(STORED, target) == ColumnComparison("exact")


def test_other_chunks_are_equal(target: Target) -> None:
    assert verdict(pa.concat_tables([STORED.slice(0, 9), STORED.slice(9)]), target).outcome == "exact"


def test_a_dropped_last_row_is_found(target: Target) -> None:
    assert verdict(STORED.slice(0, LAST_ROW), target).problems == ("rows: stored 50, came back 49",)


def test_two_swapped_rows_are_found(target: Target) -> None:
    order = [*range(20), 21, 20, *range(22, 50)]
    problems = verdict(STORED.take(order), target).problems
    assert len(problems) == STORED.num_columns
    assert problems[0] == '"label" row 20: stored 20 (int64), came back 21 (int64)'


def test_columns_in_another_order_are_found(target: Target) -> None:
    assert "columns" in verdict(STORED.select(STORED.column_names[::-1]), target).problems[0]


def test_integers_become_floats_are_found(target: Target) -> None:
    (problem,) = verdict(replaced("label", STORED["label"].cast(pa.float64())), target).problems
    assert problem.startswith('"label" row 0: stored 0 (int64), came back ')
    assert "float64" in problem or "double" in problem


def test_none_become_empty_text_is_found(target: Target) -> None:
    (problem,) = verdict(with_value("word", 17, ""), target).problems
    assert problem == "\"word\" row 17: stored None (large_string), came back '' (large_string)"


@pytest.mark.parametrize("name", STORED.column_names)
@pytest.mark.rule(11)
def test_the_last_value_is_compared(name: str, target: Target) -> None:
    (problem,) = verdict(with_value(name, LAST_ROW, STORED[name][LAST_ROW - 2].as_py()), target).problems
    assert problem.startswith(f'"{name}" row {LAST_ROW}: stored ')


@pytest.mark.parametrize("name", STORED.column_names)
@pytest.mark.rule(11)
def test_a_value_that_became_null_is_found(name: str, target: Target) -> None:
    assert len(verdict(with_value(name, 30, None), target).problems) == 1


def test_a_label_of_text_is_described() -> None:
    (problem,) = verdict(replaced("label", STORED["label"].cast(pa.string())), ARROW).problems
    assert problem == "\"label\" row 0: stored 0 (int64), came back '0' (string)"


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


def test_null_and_nan_differ_where_the_target_distinguishes_them() -> None:
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


@pytest.mark.rule(8)
def test_numpy_for_masked_is_found() -> None:
    frame = targets.make(STORED, PANDAS).astype({"count": "float64"})
    (problem,) = compare(STORED, frame, PANDAS).problems
    assert problem == '"count" row 0: stored 0 (Int32), came back np.float64(0.0) (float64)'


@pytest.mark.parametrize(
    ("name", "wrong"), [("day", dt.datetime(2024, 1, 6)), ("price", 1.25), ("day", "2024-01-06"), ("pair", "[5 -5]")]
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
    assert problem == "\"word\" row 0: stored 'w0' (string), came back b'w0' (bytes)"


@pytest.mark.parametrize(
    "index",
    [pd.RangeIndex(1, 51), pd.Index(np.arange(50.0)), pd.RangeIndex(50, name="row"), pd.RangeIndex(49, -1, -1)],
    ids=["from one", "floats", "named", "reversed"],
)
def test_another_index_is_found(index: pd.Index) -> None:
    frame = targets.make(STORED, PANDAS)
    frame.index = index
    assert "index" in compare(STORED, frame, PANDAS).problems[0]


def test_an_index_of_stored_integers_is_the_default_one() -> None:
    frame = targets.make(STORED, PANDAS)
    frame.index = pd.Index(np.arange(50, dtype=np.int64))
    assert compare(STORED, frame, PANDAS).outcome == "exact"


def test_the_wrong_container_is_found() -> None:
    assert "DataFrame" in compare(STORED, targets.make(STORED, PANDAS), ARROW).problems[0]


# --- nested columns ------------------------------------------------------------------------------------------------

NAN = float("nan")
PAIR = pa.struct({"a": pa.int64(), "b": pa.string()})
TO_INT = pa.map_(pa.string(), pa.int64())


def one_column(arrow_type: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({"c": pa.array(values, arrow_type)})


def outcome_of_objects(stored: pa.Table, *values: Any) -> str:
    """Return the outcome of verification for a column of objects that was read back with these values."""
    targets.apply_strings(PANDAS)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return compare(stored, pd.DataFrame({"c": pd.Series(column, dtype=object)}), PANDAS).outcome


OBJECTS = {
    "list of ints as floats": (pa.list_(pa.int64()), [[1, 2], [3]], [np.array([1.0, 2.0]), np.array([3.0])]),
    "list of ints as list of floats": (pa.list_(pa.int64()), [[1, 2]], [[1.0, 2.0]]),
    "list of ints as booleans": (pa.list_(pa.int64()), [[1, 0]], [[True, False]]),
    "list of ints in a narrower array": (pa.list_(pa.int64()), [[1], [2]], [np.array([1]), np.array([2], np.int8)]),
    "list of floats as ints": (pa.list_(pa.float64()), [[1.0, 2.0]], [np.array([1, 2])]),
    "list of floats as list of ints": (pa.list_(pa.float64()), [[1.0, 2.0]], [[1, 2]]),
    "list of floats with another zero": (pa.list_(pa.float64()), [[0.0]], [np.array([-0.0])]),
    "list of floats, rounded": (pa.list_(pa.float32()), [[0.1]], [[0.1]]),
    "list of bytes as text": (pa.list_(pa.binary()), [[b"x"]], [np.array(["x"], object)]),
    "list of text as bytes": (pa.list_(pa.string()), [["x"]], [np.array([b"x"], object)]),
    "NaN for null in a list of text": (pa.list_(pa.string()), [["x", None]], [np.array(["x", NAN], object)]),
    "NaN for null in a list": (pa.list_(pa.float64()), [[1.0, None]], [[1.0, NAN]]),
    "a shorter list": (pa.list_(pa.int64()), [[1, 2], [3]], [np.array([1]), np.array([2, 3])]),
    "a list of two dimensions": (pa.list_(pa.int64()), [[1, 2]], [np.array([[1, 2]])]),
    "a tuple for a list": (pa.list_(pa.int64()), [[1, 2]], [(1, 2)]),
    "an empty list for null": (pa.list_(pa.int64()), [None], [np.array([], np.int64)]),
    "null for an empty list": (pa.list_(pa.int64()), [[]], [None]),
    "ints in a list of a list as floats": (pa.list_(pa.list_(pa.int64())), [[[1]]], [[[1.0]]]),
    "a list of times below the unit": (pa.list_(pa.time32("s")), [[dt.time(1)]], [[dt.time(1, microsecond=5)]]),
    "an extra key": (PAIR, [{"a": 1, "b": "x"}], [{"a": 1, "b": "x", "c": None}]),
    "a missing key": (PAIR, [{"a": 1, "b": None}], [{"a": 1}]),
    "an int of a struct as float": (PAIR, [{"a": 1, "b": "x"}], [{"a": 1.0, "b": "x"}]),
    "NaN for null in a struct": (PAIR, [{"a": 1, "b": None}], [{"a": 1, "b": NAN}]),
    "a struct of nulls for null": (PAIR, [None, {"a": 1, "b": "x"}], [{"a": None, "b": None}, {"a": 1, "b": "x"}]),
    "a zone of a struct": (
        pa.struct({"at": pa.timestamp("us", "UTC")}),
        [{"at": dt.datetime(2024, 1, 1)}],
        [{"at": dt.datetime(2024, 1, 1)}],
    ),
    "an int of a map as float": (TO_INT, [[("a", 1)]], [[("a", 1.0)]]),
    "a key of a map as bytes": (TO_INT, [[("a", 1)]], [[(b"a", 1)]]),
    "a dict for a map": (TO_INT, [[("a", 1)]], [{"a": 1}]),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_change_inside_a_nested_column_is_found(name: str) -> None:
    arrow_type, stored, came_back = OBJECTS[name]
    assert outcome_of_objects(one_column(arrow_type, *stored), *came_back) == "different"


@pytest.mark.parametrize(
    ("arrow_type", "stored", "came_back"),
    [
        (pa.list_(pa.int64()), [[1, 2], [], None], [[1, 2], [], NAN]),
        (pa.list_(pa.float64()), [[1.0, NAN]], [[1.0, NAN]]),
        (pa.list_(pa.string()), [["a\0b", None]], [["a\0b", None]]),
        (pa.list_(pa.int64()), [[1, None], [2]], [np.array([1.0, NAN]), np.array([2])]),
        (TO_INT, [[("a", 1)], []], [[["a", 1]], []]),
    ],
    ids=str,
)
def test_a_list_may_replace_an_array_or_a_pair(arrow_type: pa.DataType, stored: Any, came_back: Any) -> None:
    assert outcome_of_objects(one_column(arrow_type, *stored), *came_back) == "exact"


NESTED_TYPES = [
    pa.list_(pa.float64()),
    pa.large_list(pa.float32()),
    pa.list_(pa.float64(), 2),
    pa.struct({"x": pa.list_(pa.float64())}),
    pa.map_(pa.string(), pa.float64()),
    pa.list_(pa.struct({"x": pa.float64(), "y": pa.dictionary(pa.int8(), pa.string())})),
]


def nested_value(arrow_type: pa.DataType, number: float) -> Any:
    """Return a value of this type that contains the given number once."""
    if pa.types.is_map(arrow_type):
        return [("k", number)]
    if pa.types.is_struct(arrow_type):
        return {field.name: nested_value(field.type, number) for field in arrow_type}
    if pa.types.is_nested(arrow_type):
        return [nested_value(arrow_type.value_type, number)] * (2 if pa.types.is_fixed_size_list(arrow_type) else 1)
    return "text" if pa.types.is_dictionary(arrow_type) else number


@pytest.mark.parametrize("arrow_type", NESTED_TYPES, ids=str)
def test_floats_inside_are_compared_bit_by_bit(arrow_type: pa.DataType, target: Target) -> None:
    def column(*numbers: float) -> pa.Table:
        return one_column(arrow_type, *[nested_value(arrow_type, number) for number in numbers], None)

    assert same_floats(column(1.0, NAN), column(1.0, NAN), target)
    assert not same_floats(column(1.0, 0.0), column(1.0, -0.0), target)
    assert not same_floats(column(1.0, NAN), column(1.0, 2.0), target)


def test_a_nested_null_differs_from_nan() -> None:
    lists = pa.list_(pa.float64())
    assert not same_floats(one_column(lists, [1.0, None]), one_column(lists, [1.0, NAN]), ARROW)


def test_lists_of_other_lengths_are_found() -> None:
    lists = pa.list_(pa.int64())
    assert not same_floats(one_column(lists, [1, 2], [3]), one_column(lists, [1], [2, 3]), ARROW)
    assert not same_floats(one_column(lists, [], [3]), one_column(lists, None, [3]), ARROW)


@pytest.mark.parametrize("rows", [1, 131_072, 131_073])
def test_the_last_row_of_any_block_is_compared(rows: int, target: Target) -> None:
    stored = pa.table({"i": pa.array(range(rows)), "s": pa.array(["x"] * rows)})
    changed = pa.table({"i": pa.array([*range(rows - 1), -1]), "s": pa.array([*["x"] * (rows - 1), "y"])})
    assert compare(stored, targets.make(stored, target), target).outcome == "exact"
    problems = compare(stored, targets.make(changed, target), target).problems
    assert [problem.split(":")[0] for problem in problems] == [f'"i" row {rows - 1}', f'"s" row {rows - 1}']


# --- text as objects -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "came_back", "outcome"),
    [
        (["a", "b"], ["a", "b"], "exact"),
        (["a", None], ["a", NAN], "exact"),
        (["a\0b", "c"], ["a\0b", "c"], "exact"),
        (["a\0b", "c"], ["a", "b\0c"], "different"),
        (["a", "b"], ["a\0b", ""], "different"),
        (["ab", "c"], ["a", "bc"], "different"),
        (["a", None], ["a", ""], "different"),
        (["a", ""], ["a", None], "different"),
        (["a", "b"], ["a", np.str_("b")], "different"),
        (["a", "1.5"], ["a", 1.5], "different"),
        (["", ""], ["", ""], "exact"),
    ],
)
def test_text_as_objects(stored: list[Any], came_back: list[Any], outcome: str) -> None:
    objects = Target("pandas", strings="object")
    targets.apply_strings(objects)
    frame = pd.DataFrame({"c": pd.Series(came_back, dtype=object)})
    assert compare(one_column(pa.string(), *stored), frame, objects).outcome == outcome


# --- categoricals --------------------------------------------------------------------------------------------------


def categorical(values: list[str], categories: list[str], ordered: bool) -> pa.Table:
    codes = pa.array([categories.index(value) for value in values], pa.int32())
    return pa.table({"c": pa.DictionaryArray.from_arrays(codes, pa.array(categories), ordered=ordered)})


VALUES = ["low", "high", "mid", "low"]
SCALE = ["low", "mid", "high"]


@pytest.mark.parametrize("categories", [SCALE[::-1], ["high", "low", "mid"], [*SCALE, "top"]], ids=str)
def test_the_categories_of_an_ordered_categorical_count(categories: list[str], target: Target) -> None:
    stored, other = categorical(VALUES, SCALE, True), categorical(VALUES, categories, True)
    assert compare(stored, targets.make(stored, target), target).outcome == "exact"
    (problem,) = compare(stored, targets.make(other, target), target).problems
    assert problem == f'"c" ordered categories: stored {SCALE}, came back {categories}'


@pytest.mark.parametrize("categories", [SCALE[::-1], [*SCALE, "top"]], ids=str)
def test_those_of_an_unordered_one_are_no_values(categories: list[str], target: Target) -> None:
    stored, other = categorical(VALUES, SCALE, False), categorical(VALUES, categories, False)
    assert compare(stored, targets.make(other, target), target).outcome == "exact"


def test_whether_a_categorical_is_ordered_counts(target: Target) -> None:
    stored, other = categorical(VALUES, SCALE, True), categorical(VALUES, SCALE, False)
    assert compare(stored, targets.make(other, target), target).outcome == "different"


@pytest.mark.parametrize("ordered", [False, True])
def test_a_categorical_may_have_no_value_and_no_categories(ordered: bool) -> None:
    stored = pa.table({"c": pa.nulls(3, pa.dictionary(pa.int32(), pa.string(), ordered))})
    frame = targets.make(stored, PANDAS)
    assert compare(stored, pa.Table.from_pandas(frame).to_pandas(), PANDAS) == ColumnComparison("exact")
    frame["c"] = frame["c"].cat.add_categories(["low"])
    frame.loc[1, "c"] = "low"
    assert compare(stored, frame, PANDAS).outcome == "different"


def test_ordered_categories_may_come_in_chunks() -> None:
    whole = categorical(VALUES, ["low", "high", "mid"], True)
    first, second = categorical(VALUES[:2], ["low", "high"], True), categorical(VALUES[2:], ["mid", "low"], True)
    assert compare(whole, pa.concat_tables([first, second]), ARROW).outcome == "exact"


def test_ordered_categories_inside_count() -> None:
    def inside(categories: list[str]) -> pa.Table:
        values = categorical(VALUES, categories, True)["c"].chunk(0)
        return pa.table({"c": pa.ListArray.from_arrays(pa.array([0, 4], pa.int32()), values)})

    assert compare(inside(SCALE), inside(SCALE), ARROW).outcome == "exact"
    assert compare(inside(SCALE), inside(SCALE[::-1]), ARROW).outcome == "different"


# --- losses --------------------------------------------------------------------------------------------------------


def loss(relation: Relation, **rest: Any) -> Loss:
    return Loss("it changes", "only so much", Cause.CALL, relation, frozenset({"float64"}), **rest)


TEN_DECIMALS = loss(Relation(any_floats, tolerance=1e-10))


def rounded(decimals: int) -> pa.Table:
    return replaced("share", pa.array([round(value, decimals) for value in STORED["share"].to_pylist()]))


def test_a_declared_loss_within_its_bound(target: Target) -> None:
    assert verdict(rounded(10), target, (TEN_DECIMALS,)) == ColumnComparison("declared loss", ("it changes",))


def test_a_bound_holds_when_another_loss_has_none(target: Target) -> None:
    both = (TEN_DECIMALS, loss(Relation(any_floats)))
    assert verdict(rounded(10), target, both).outcome == "declared loss"
    assert verdict(rounded(8), target, both).outcome == "different"


@pytest.mark.rule(12)
def test_a_declared_loss_outside_its_bound(target: Target) -> None:
    assert verdict(rounded(8), target, (TEN_DECIMALS,)).outcome == "different"


@pytest.mark.parametrize(("off", "outcome"), [(1e-12, "declared loss"), (1e-8, "different")])
@pytest.mark.parametrize("as_lists", [False, True], ids=["arrays", "lists"])
def test_a_bound_holds_for_the_floats_of_vectors(target: Target, off: float, outcome: str, as_lists: bool) -> None:
    stored = pa.table({"v": pa.array([[0.5, 1.5], None, [2.5, 3.5]], pa.list_(pa.float32(), 2))})
    got = pa.table({"v": pa.array([[0.5, 1.5], None, [2.5, 3.5 + off]], pa.list_(pa.float64()))})
    within = loss(Relation(vectors_as_lists_of_float64, tolerance=1e-10))
    held = targets.make(got, target)
    if as_lists and target.kind == "pandas":
        held["v"] = [None if value is None else list(map(float, value)) for value in held["v"]]
    assert compare(stored, held, target, (within,)).outcome == outcome


def test_a_declared_loss_that_does_not_occur_is_exact(target: Target) -> None:
    assert verdict(STORED, target, (TEN_DECIMALS,)) == ColumnComparison("exact")


@pytest.mark.parametrize("wrong", [None, 1e300, float("inf"), 4.2])
@pytest.mark.rule(12)
def test_a_fault_in_a_lossy_column_is_found(wrong: float | None, target: Target) -> None:
    values = rounded(10)["share"].to_pylist()
    values[40] = wrong
    (problem,) = verdict(replaced("share", pa.array(values)), target, (TEN_DECIMALS,)).problems
    assert problem.startswith('"share" row 40: stored 5.714285714285714 (double), came back ')


def test_swapped_rows_in_a_lossy_column_are_found(target: Target) -> None:
    values = rounded(10)["share"].to_pylist()
    values[8], values[9] = values[9], values[8]
    assert verdict(replaced("share", pa.array(values)), target, (TEN_DECIMALS,)).outcome == "different"


@pytest.mark.parametrize("field", ["targets", "strings", "nulls"])
def test_a_loss_of_another_target_is_none(field: str, target: Target) -> None:
    other = loss(Relation(any_floats, tolerance=1e-10), **{field: frozenset({"neither"})})
    assert verdict(rounded(10), target, (other,)).outcome == "different"


AS_TEXT = loss(Relation(written.written_as_text, parse=written.parse_text))


def test_text_that_represents_the_values(target: Target) -> None:
    days = pa.array([str(day) for day in STORED["day"].to_pylist()])
    assert verdict(replaced("day", days), target, (AS_TEXT,)).outcome == "declared loss"


def test_what_is_no_text_is_found() -> None:
    objects = Target("pandas", strings="object")
    targets.apply_strings(objects)
    frame = targets.make(replaced("day", pa.array([str(day) for day in STORED["day"].to_pylist()])), objects)
    assert compare(STORED, frame, objects, (AS_TEXT,)).outcome == "declared loss"
    frame.loc[30, "day"] = 1.5
    (problem,) = compare(STORED, frame, objects, (AS_TEXT,)).problems
    assert problem == '"day" row 30: stored text, came back 1.5 (float)'


@pytest.mark.parametrize("wrong", ["2024-03-01", "soon", None])
def test_text_that_represents_other_values(wrong: str | None, target: Target) -> None:
    days = [str(day) for day in STORED["day"].to_pylist()]
    days[30] = wrong
    assert verdict(replaced("day", pa.array(days)), target, (AS_TEXT,)).outcome == "different"


# --- some rows of what was stored ----------------------------------------------------------------------------------


def _as_floats_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return column.cast(pa.float64()) if column.null_count and pa.types.is_integer(column.type) else None


def _text_of_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    empty = column.null_count == len(column) and pa.types.is_string(column.type)
    return pa.chunked_array([pa.nulls(len(column))]) if empty else None


def _loss(expect: Any) -> Loss:
    return Loss("it changes", "the same values", Cause.CALL, Relation(expect), frozenset({"int64"}))


def test_rows_are_held_against_what_was_stored_in_the_order_asked() -> None:
    stored = pa.table({"i": [10, 11, 12, 13]})
    rows = np.array([3, 0, 3])
    assert verify.compare(stored, pa.table({"i": [13, 10, 13]}), Target("arrow"), rows=rows).outcome == verify.EXACT
    for wrong in ([10, 13, 13], [13, 10, 12], [13, 10]):
        assert verify.compare(stored, pa.table({"i": wrong}), Target("arrow"), rows=rows).problems


def test_a_loss_of_the_whole_column_is_seen_in_rows_that_would_not_show_it() -> None:
    """A reader that converts integers to floats because of one null also converts the values of rows without nulls."""
    stored = pa.table({"i": [1, None, 3]})
    rows = np.array([2, 0])
    losses = [_loss(_as_floats_with_nulls)]
    found = verify.compare(stored, pa.table({"i": [3.0, 1.0]}), Target("arrow"), losses, rows)
    assert found.outcome == verify.DECLARED
    assert verify.compare(stored, pa.table({"i": [3.0, 1.5]}), Target("arrow"), losses, rows).problems
    assert verify.compare(stored, pa.table({"i": [3.0, 1.0]}), Target("arrow"), [], rows).problems


def test_a_loss_of_these_rows_alone_is_one_too() -> None:
    stored = pa.table({"s": ["a", None, None]})
    losses = [_loss(_text_of_nulls)]
    nothing = pa.table({"s": pa.nulls(2)})
    assert verify.compare(stored, nothing, Target("arrow"), losses, np.array([1, 2])).outcome == verify.DECLARED
    assert verify.compare(stored, nothing, Target("arrow"), losses, np.array([0, 1])).problems


PLAIN = (pandas_losses.DICTIONARY_AS_VALUES, pandas_losses.FLOAT16_AS_WRITTEN)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_fault_in_categories_that_became_plain_is_found(ordered: bool, target: Target) -> None:
    stored = categorical(VALUES, SCALE, ordered)
    for values, outcome in ((VALUES, "declared loss"), ([*VALUES[:-1], "mid"], "different")):
        assert compare(stored, targets.make(pa.table({"c": values}), target), target, PLAIN).outcome == outcome


@pytest.mark.parametrize("value", [0.1, -2.5, 65_504.0, 6e-8])
def test_a_fault_in_float16_that_became_wider_is_found(value: float, target: Target) -> None:
    stored = pa.table({"h": pa.array([np.float16(value)], pa.float16())})
    nearest, next_one = float(str(np.float16(value))), float(np.nextafter(np.float16(value), np.float16(0)))
    for came, outcome in ((nearest, "declared loss"), (next_one, "different")):
        assert compare(stored, targets.make(pa.table({"h": [came]}), target), target, PLAIN).outcome == outcome


@pytest.mark.parametrize(("nulls", "whole"), [("masked", "Int64"), ("numpy", "float64")])
def test_rows_without_nulls_have_their_own_dtype_or_that_of_the_column(nulls: str, whole: str) -> None:
    stored = pa.table({"i": [1, None, 3]})
    target = Target("pandas", nulls=nulls)
    rows = np.array([2, 0])
    for dtype in ("int64", whole):
        read = pd.DataFrame({"i": pd.Series([3, 1], dtype=dtype)})
        assert verify.compare(stored, read, target, rows=rows).outcome == verify.EXACT
    for dtype in ("int32", "object", "float64" if whole == "Int64" else "Int64"):
        read = pd.DataFrame({"i": pd.Series([3, 1], dtype=dtype)})
        assert verify.compare(stored, read, target, rows=rows).problems
    other = pd.DataFrame({"i": pd.Series([3, 2], dtype=whole)})
    assert verify.compare(stored, other, target, rows=rows).problems
    full = pa.table({"i": [1, 2, 3]})
    assert verify.compare(full, pd.DataFrame({"i": pd.Series([3, 1], dtype=whole)}), target, rows=rows).problems
