"""A short run of `agreement`: random filters and aggregates over random files, all ways compared with memory.

`make selfbench-near-storage` runs 25,000.
"""

import pytest

from libraries.near_storage.tests import agreement


@pytest.mark.parametrize("seed", [10_000, 20_000])
def test_filters_by_every_way(seed):
    assert agreement.run(seed, 100, aggregated=False, every_way=False) > 500


def test_aggregates_by_every_way():
    assert agreement.run(30_000, 60, aggregated=True, every_way=False) > 150
