"""The cost model reproduces the thesis's figures, and gives corrected figures for the amount of storage that
it meant."""

from __future__ import annotations

import pytest

from reports.analysis.near_storage.cost import (
    D3EN_4XLARGE,
    REED_SOLOMON_10_4,
    S3_STANDARD,
    THESIS_STORED_GB,
    Machine,
    Tier,
    cluster_per_month,
    provider_per_month,
)


def test_the_figures_of_section_3_1_come_out() -> None:
    s3 = provider_per_month(THESIS_STORED_GB, S3_STANDARD)
    assert s3 == pytest.approx(3_623_050)
    assert D3EN_4XLARGE.per_month == pytest.approx(1274.58, abs=0.005)
    plain = cluster_per_month(THESIS_STORED_GB, D3EN_4XLARGE)
    assert (plain.machines, plain.per_month) == (1543, pytest.approx(1_966_676.94, abs=5))
    assert plain.per_month / s3 == pytest.approx(0.54, abs=0.005)
    printed = cluster_per_month(175_500_000, D3EN_4XLARGE, REED_SOLOMON_10_4)
    assert (printed.machines, printed.per_month) == (2197, pytest.approx(2_800_252.26, abs=5))


def test_erasure_coding_of_what_is_stored_is_cheaper_than_printed() -> None:
    """With 172.5 PB instead of 175.5 PB, the cost is 2,160 machines, or 76 % of S3."""
    meant = cluster_per_month(THESIS_STORED_GB, D3EN_4XLARGE, REED_SOLOMON_10_4)
    assert meant.machines == 2160
    assert meant.per_month / provider_per_month(THESIS_STORED_GB, S3_STANDARD) == pytest.approx(0.76, abs=0.005)


def test_two_replicas_cost_twice_the_machines_and_more_than_s3() -> None:
    twice = cluster_per_month(THESIS_STORED_GB, D3EN_4XLARGE, 2)
    assert twice.machines == 3085
    assert twice.per_month > provider_per_month(THESIS_STORED_GB, S3_STANDARD)


def test_tiers_are_added_up() -> None:
    tiers = (Tier(10, 3.0), Tier(30, 2.0), Tier(None, 1.0))
    assert [provider_per_month(stored, tiers) for stored in (0, 5, 10, 20, 30, 100)] == [0, 15, 30, 50, 70, 140]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: provider_per_month(11, (Tier(10, 1.0),)), "the last tier ends at 10 GB"),
        (lambda: cluster_per_month(1, Machine(1, 1), 0.9), r"redundancy must be at least 1.*0\.9"),
    ],
)
def test_impossible_input_is_refused(call: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call()  # type: ignore[operator]
