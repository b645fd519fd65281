"""A few hundred randomly broken footers; `long_runs` breaks ten thousand."""

from __future__ import annotations

from collections import Counter

from libraries.near_storage.tests.parquet.fuzzing import MOST_S, run

SEED = 1


def check(count: int, seed: int, folder) -> None:
    outcomes = list(run(count, seed, folder))
    ended = Counter(name for name, _ in outcomes)
    assert max(seconds for _, seconds in outcomes) < MOST_S
    # Neither all accepted nor all refused: the mutations get past the first check.
    assert 0.02 * count < ended["taken"] < 0.9 * count
    assert ended["Parquet footer"] > 0
    assert ended["Parquet schema"] > 0


def test_broken_footers_end_in_a_footer_or_an_error(tmp_path):
    check(100, SEED, tmp_path)
