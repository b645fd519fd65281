"""The synthetic tables: properties stated in the thesis, and its error (identical columns)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from data_generator.catalogue import resolve
from data_generator.dataset import BATCH_ROWS
from data_generator.errors import DataError

PRESETS = {"eq": (2, 2, 2, 2), "int": (5, 1, 1, 1), "float": (1, 5, 1, 1), "bool": (1, 1, 5, 1), "str": (1, 1, 1, 5)}


def table(name: str, rows: int, **parameters: str) -> pa.Table:
    made = pa.Table.from_batches(resolve(name, parameters, rows=rows).batches())
    made.validate(full=True)
    return made


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_columns_of_table_4_2(name: str) -> None:
    dataset = resolve(name, {})
    kinds = [str(field.type) for field in dataset.schema]
    assert tuple(kinds.count(kind) for kind in ("int64", "double", "bool", "string")) == PRESETS[name]
    assert dataset.rows == 1_000_000


@pytest.mark.parametrize("name", PRESETS)
def test_columns_stand_in_shuffled_order(name: str) -> None:
    names = resolve(name, {}).schema.names
    grouped = [key for key in ("int", "float", "bool", "str") for other in sorted(names) if other.startswith(key)]
    assert [column.partition("_")[0] for column in names] != grouped


@pytest.mark.parametrize("name", PRESETS)
def test_no_two_columns_are_equal(name: str) -> None:
    columns = table(name, 1000).columns
    for index, column in enumerate(columns):
        assert not any(column.equals(other) for other in columns[:index])


def test_values_are_uniform_in_0_to_100() -> None:
    made = table("eq", 100_000)
    integers = made["int_1"].to_numpy()
    floats = made["float_1"].to_numpy()
    assert (integers.min(), integers.max()) == (0, 100)
    assert 0 <= floats.min() < 0.1
    assert 99.9 < floats.max() < 100
    assert abs(floats.mean() - 50) < 0.5
    assert len(np.unique(floats)) == len(floats)
    assert 0.49 < made["bool_1"].combine_chunks().true_count / 100_000 < 0.51


def test_strings_are_ten_lower_case_letters() -> None:
    texts = table("str", 10_000)["str_3"]
    assert pc.all(pc.match_substring_regex(texts, "^[a-z]{10}$")).as_py()
    assert pc.count_distinct(texts).as_py() == 10_000


def test_varying_strings_have_every_length_around_the_mean() -> None:
    lengths = pc.binary_length(table("synthetic", 20_000, str="1", strings="varying", length="4")["str_1"])
    assert sorted(set(lengths.to_pylist())) == [1, 2, 3, 4, 5, 6, 7]


def test_words_repeat_as_words_do() -> None:
    texts = table("synthetic", 50_000, str="1", strings="words")["str_1"]
    distinct = pc.count_distinct(texts).as_py()
    assert 20_000 < distinct < 49_000
    assert pc.all(pc.match_substring_regex(texts, "^[a-z]+ [a-z]+$")).as_py()


@pytest.mark.parametrize("strings", ["fixed", "varying", "words"])
def test_nulls_have_the_share_asked_for_and_hide_nothing(strings: str) -> None:
    counts = {"int": "1", "float": "1", "bool": "1", "str": "1"}
    made = table("synthetic", 20_000, **counts, strings=strings, nulls="0.25")
    for column in made.columns:
        assert abs(column.null_count / 20_000 - 0.25) < 0.02
    texts = made["str_1"].combine_chunks()
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    assert offsets[20_000] - offsets[0] == pc.sum(pc.binary_length(texts)).as_py()
    hidden = np.frombuffer(made["int_1"].combine_chunks().buffers()[1], np.int64)[:20_000]
    assert not hidden[pc.is_null(made["int_1"]).to_numpy()].any()


def test_the_first_rows_of_a_long_table_are_a_short_one() -> None:
    long = table("eq", BATCH_ROWS + 1000)
    assert long.column(0).num_chunks == 2
    counts = {"int": "1", "float": "1"}
    assert table("synthetic", 500, **counts).equals(table("synthetic", 900, **counts).slice(0, 500))


def test_batches_of_a_column_differ() -> None:
    column = table("synthetic", 2 * BATCH_ROWS, int="1").column(0)
    assert not column.chunk(0).equals(column.chunk(1))


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(DataError, match="no column"):
        resolve("synthetic", {"strings": "words"})
