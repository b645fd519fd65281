"""The realistic tables match the profiles of real columns."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from data_generator.catalogue import resolve
from data_generator.dataset import BATCH_ROWS
from data_generator.generated import realistic, vocabulary
from data_generator.generated.profile import ColumnStatistics, column_statistics
from data_generator.generated.profiles import PROFILES, TypeProfile

ROWS = {"core": 250_000, "bi": 250_000, "classic": 50_000, "geo": 1_000_000, "log": 50_000, "ml": 1_000_000}
"""The fewest rows that show the shapes of the columns, some of which have large sets of values."""


def table(name: str, rows: int) -> pa.Table:
    made = pa.Table.from_batches(resolve(name, {}, rows=rows).batches())
    made.validate(full=True)
    return made


def by_type(made: pa.Table) -> dict[str, list[ColumnStatistics]]:
    found: dict[str, list[ColumnStatistics]] = {}
    for field, column in zip(made.schema, made.columns, strict=True):
        kind = "float64" if field.type == pa.float64() else str(field.type)
        found.setdefault(kind, []).append(column_statistics(column))
    return found


def bounds(profile: TypeProfile, statistic: str, rows: int) -> tuple[float, float, float]:
    """Return the 10th, 50th and 90th percentile.

    The real tables had other row counts, so their distinct counts and ratios do not agree for this number of rows. The
    ratio decides, but a set of up to 100 values does not shrink with the table.
    """
    low, _, middle, _, high = getattr(profile, statistic)
    if statistic == "distinct_ratio":
        counts = [min(profile.distinct_values[index], 100) / rows for index in (0, 2, 4)]
        return max(low, counts[0]), max(middle, counts[1]), max(high, counts[2])
    return low, middle, high


@pytest.mark.slow
@pytest.mark.parametrize("name", PROFILES)
def test_every_column_is_within_its_profile_and_the_medians_in_the_middle(name: str) -> None:
    """The shares of missing and of distinct values have a resolution of one row."""
    measured = by_type(table(name, ROWS[name]))
    assert {kind: len(columns) for kind, columns in measured.items()} == {
        kind: profile.columns for kind, profile in PROFILES[name].items()
    }
    assert sum(map(len, measured.values())) == 20
    wrong = []
    for kind, columns in measured.items():
        for statistic in (
            "distinct_ratio", "null_ratio", "sortedness", "zipf_exponent", "top_value_share", "mean_run_length",
            "width_bytes",
        ):  # fmt: skip
            if getattr(PROFILES[name][kind], statistic) is None:
                continue
            low, middle, high = bounds(PROFILES[name][kind], statistic, ROWS[name])
            values = [getattr(column, statistic) for column in columns]
            one_row = 1 / ROWS[name] if statistic.endswith("ratio") else 1e-9
            outside = [value for value in values if not low - one_row <= value <= high + one_row]
            median = float(np.median(values))
            if outside or not abs(median - middle) <= max(0.25 * middle, one_row):
                expected = f"{low:g} to {high:g}, median {middle:g}"
                wrong.append(f"{kind} {statistic}: {outside}, median {median:g}; expected {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("rows", [1, 513, 10_000])
def test_short_tables_can_be_made_and_look_alike(name: str, rows: int) -> None:
    made = table(name, rows)
    assert (made.num_rows, made.num_columns) == (rows, 20)
    if rows == 10_000:
        for index, column in enumerate(made.columns):
            assert pc.count_distinct(column).as_py() == 1 or not any(column.equals(c) for c in made.columns[:index])


def test_a_longer_table_has_more_values_in_large_sets_and_the_same_small_ones() -> None:
    recipe = realistic.Recipe("x", "int64", 0.1, 2, 0.5, 0.01, 0.0, 0.1, 0.5, 0.0)
    small = realistic.Recipe("y", "string", 1e-6, 50, 0.5, 0.1, 0.0, 0.1, 0.5, 0.0, 9.0)
    first, second = (realistic.column(recipe, 100_000, batch, ("t", "x")) for batch in (0, 1))
    assert pc.count_distinct(first).as_py() == 10_000
    assert 17_000 < pc.count_distinct(pa.chunked_array([first, second])).as_py() < 18_000
    top = [pc.mode(chunk)[0]["mode"] for chunk in (first, second)]
    assert top[0] == top[1]
    first, second = (realistic.column(small, 100_000, batch, ("t", "y")) for batch in (0, 1))
    assert pc.count_distinct(pa.chunked_array([first, second])).as_py() == 50
    assert not first.equals(second)


def test_tables_longer_than_a_batch_are_made_batch_by_batch() -> None:
    sizes = [batch.num_rows for batch in resolve("log", {}, rows=BATCH_ROWS + 5).batches()]
    assert sizes == [BATCH_ROWS, 5]


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0, 1.7, 2.25])
def test_powers_without_a_library_function(exponent: float) -> None:
    base = np.arange(1, 1000)
    assert np.allclose(realistic._power(base, exponent), base**exponent, rtol=2e-3)


@pytest.mark.parametrize(("distinct", "exponent", "share"), [(2, 0.0, 0.9), (50, 1.0, 0.5), (1000, 0.0, 0.001)])
def test_the_first_rank_gets_its_share(distinct: int, exponent: float, share: float) -> None:
    weights = realistic.rank_weights(distinct, exponent, share)
    assert len(weights) == distinct
    assert weights[0] / weights.sum() == pytest.approx(share, rel=0.01)
    assert (np.diff(weights) <= 0).all()


def test_the_head_is_cut_where_the_law_gives_the_first_too_much() -> None:
    weights = realistic.rank_weights(1000, 1.0, 0.01)
    assert weights[0] == weights[1]
    assert weights[0] / weights.sum() == pytest.approx(0.01, rel=0.01)
    assert weights[900] / weights[450] == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("slots", [0, 5, 100, 12_345])
def test_ranks_fill_the_slots_exactly(slots: int, least: int) -> None:
    counts = realistic._counts(realistic.rank_weights(100, 1.2, 0.2), slots, least)
    assert counts.sum() == slots
    assert counts.min() >= (least if slots >= 100 else 0)


@pytest.mark.parametrize("kind", ["float64", "int64", "string"])
@pytest.mark.parametrize("count", [1, 2, 100, 5000])
def test_sets_of_values_are_distinct_and_ascending(kind: str, count: int) -> None:
    own = np.arange(count) % 4 > 0 if count > 100 else np.zeros(count, dtype=bool)
    values = vocabulary.values(kind, own, 9.0, ("t", kind), 3)
    assert len(values) == count == pc.count_distinct(values).as_py()
    assert values.equals(values.take(pc.sort_indices(values)))
    if kind == "string":
        assert math.isclose(pc.mean(pc.binary_length(values)).as_py(), 9.0, abs_tol=0.3) or count < 100


def test_missing_values_are_as_many_as_the_share_says() -> None:
    recipe = realistic.Recipe("x", "float64", 0.1, 2, 0.5, 0.01, 0.0, 0.1, 0.5, 0.125)
    assert realistic.column(recipe, 8000, 0, ("t",)).null_count == 1000
