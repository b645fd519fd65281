"""The statistics of a column have known answers."""

import numpy as np
import pyarrow as pa
import pytest

from data_generator.generated.profile import column_statistics


def measured(values: object, kind: pa.DataType | None = None):
    return column_statistics(pa.chunked_array([pa.array(values, kind)]))


def test_a_constant_column() -> None:
    got = measured([7] * 1024)
    assert (got.distinct_values, got.top_value_share, got.mean_run_length, got.sortedness) == (1, 1.0, 512.0, 1.0)
    assert got.zipf_exponent == 0.0


@pytest.mark.parametrize("step", [1, -1])
def test_order_counts_in_both_directions(step: int) -> None:
    got = measured(np.arange(2048)[::step])
    assert (got.sortedness, got.mean_run_length, got.distinct_ratio) == (1.0, 1.0, 1.0)
    assert abs(got.zipf_exponent) < 1e-9


def test_random_order_is_hardly_sorted() -> None:
    values = np.random.default_rng(1).permutation(512 * 400)
    assert 0.017 < measured(values).sortedness < 0.024


def test_a_saw_of_one_window_is_sorted_but_for_its_ends() -> None:
    """Windows end where the saw falls, so the falls between them are not counted."""
    assert measured(np.tile(np.arange(512), 4)).sortedness == 1.0
    assert measured(np.tile(np.arange(256), 4)).sortedness == pytest.approx((510 - 1) / 511)


def test_equal_neighbours_neither_rise_nor_fall() -> None:
    got = measured(np.repeat([1, 3, 2, 4], 128))
    assert got.sortedness == pytest.approx(1 / 3)
    assert got.mean_run_length == 128


def test_runs_end_with_their_window() -> None:
    assert measured([1] * 700 + [2] * 324).mean_run_length == pytest.approx((512 + 512 / 2) / 2)


def test_a_power_law_gives_its_exponent() -> None:
    counts = np.round(1e6 * np.arange(1, 200) ** -1.3).astype(int)
    got = measured(np.repeat(np.arange(199), counts))
    assert got.zipf_exponent == pytest.approx(1.3, abs=0.005)
    assert got.top_value_share == pytest.approx(counts[0] / counts.sum())


def test_missing_values_count_once_and_nowhere_else() -> None:
    got = measured([1, None, 1, 2] * 256, pa.int64())
    assert (got.null_ratio, got.distinct_values) == (0.25, 2)
    assert got.top_value_share == pytest.approx(2 / 3)
    assert got.mean_run_length == pytest.approx(384 / 257, rel=0.01)


def test_windows_are_of_rows_whether_they_have_values_or_not() -> None:
    assert measured([1, None] * 256 + [2] * 512, pa.int64()).mean_run_length == (256 + 512) / 2


def test_texts_are_ordered_as_bytes_and_have_a_width() -> None:
    got = measured(["a", "bb", "b", "ab"])
    assert got.width_bytes == 1.5
    assert got.sortedness == pytest.approx(1 / 3)


def test_a_column_without_values_has_no_statistics() -> None:
    with pytest.raises(ValueError, match="without values"):
        measured([None, None], pa.int64())
