"""The data set `traits`: each trait has the requested value, and changes nothing else."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from data_generator.catalogue import resolve
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.generated import traits

ROWS = 20_000


def dataset(count: int | None = ROWS, /, **parameters: object) -> Dataset:
    return resolve("traits", {name: str(value) for name, value in parameters.items()}, rows=count)


def table(count: int | None = ROWS, /, **parameters: object) -> pa.Table:
    made = dataset(count, **parameters)
    return pa.Table.from_batches(made.batches(), made.schema).combine_chunks()


def mean_run(column: pa.ChunkedArray) -> float:
    values = column.combine_chunks().drop_null()
    return len(values) / (1 + pc.sum(pc.not_equal(values[:-1], values[1:])).as_py())


@pytest.mark.parametrize("distinct", [2, 3, 17, 1000, ROWS])
def test_each_column_has_exactly_so_many_values_all_equally_frequent(distinct: int) -> None:
    for column in table(distinct=distinct, columns=4).columns:
        counts = pc.value_counts(column).field("counts").to_pylist()
        assert len(counts) == distinct
        assert max(counts) - min(counts) <= 1
        assert mean_run(column) == 1


@pytest.mark.parametrize(("run_length", "distinct"), [(3, 2), (10, 100), (100, 100)])
def test_runs_have_that_mean_length_and_all_values_are_there(run_length: int, distinct: int) -> None:
    for column in table(run_length=run_length, distinct=distinct, columns=4).columns:
        assert pc.count_distinct(column).as_py() == distinct
        assert mean_run(column) == pytest.approx(run_length, rel=0.15)


@pytest.mark.parametrize("share", [0, 0.1, 0.9])
def test_that_share_of_each_column_is_missing_and_what_is_left_is_as_without(share: float) -> None:
    with_nulls, without = table(nulls=share, columns=4), table(columns=4)
    for name in without.column_names:
        column = with_nulls[name]
        assert column.null_count / ROWS == pytest.approx(share, abs=0.01)
        present = pc.is_valid(column)
        assert column.filter(present).equals(without[name].filter(present))
    missing = [pc.is_null(column) for column in with_nulls.columns]
    assert share == 0 or not missing[0].equals(missing[1])


@pytest.mark.parametrize("width", [3, 16, 2048])
def test_texts_have_that_many_bytes_and_numbers_stay(width: int) -> None:
    made = table(2_000, width=width, columns=4)
    assert pc.unique(pc.binary_length(made["text_1"])).to_pylist() == [width]
    assert made["number_1"].equals(table(2_000, columns=4)["number_1"])


def test_columns_are_numbers_and_texts_in_turn_and_no_two_are_equal() -> None:
    made = table(columns=7)
    assert [str(kind) for kind in made.schema.types] == ["int64", "string"] * 3 + ["int64"]
    for start in (0, 1):
        same_kind = made.columns[start::2]
        assert not same_kind[0].equals(same_kind[1])


def test_rows_are_those_of_the_parameter_or_of_the_caller() -> None:
    assert table(None, rows=100, distinct=10).num_rows == 100
    assert dataset(300, distinct=10).rows == 300
    assert dataset(300, distinct=10).parameters["rows"] == "300"
    with pytest.raises(DataError, match="either rows or rows="):
        dataset(300, rows=200, distinct=10)


def test_several_batches_hold_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traits, "BATCH_ROWS", 1_000)
    made = dataset(5_000, distinct=700, columns=2)
    assert [batch.num_rows for batch in made.batches()] == [1_000] * 5
    for column in table(5_000, distinct=700, columns=2).columns:
        assert pc.count_distinct(column).as_py() == 700


def test_the_same_every_time() -> None:
    assert table(nulls=0.3, run_length=3).equals(table(nulls=0.3, run_length=3))


@pytest.mark.parametrize(
    ("rows", "parameters", "words"),
    [
        (100, {"distinct": 101}, "at most 100 distinct values"),
        (5_000, {"distinct": 100, "run_length": 100}, "shorter runs"),
        (ROWS, {"width": 2}, "Use width=3 or more"),
        (ROWS, {"distinct": 1}, "distinct cannot be '1'"),
        (ROWS, {"nulls": 1}, "nulls cannot be '1'"),
    ],
)
def test_traits_that_cannot_be_had_together_are_refused(rows: int, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        dataset(rows, **parameters)
