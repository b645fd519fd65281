"""The break-even of near-storage reading is found where the lines of the two ways cross, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench_runner.results.records import Run, changed
from bench_runner.results.statistics import summarise
from reports.analysis.near_storage.break_even import break_evens, sentences
from reports.analysis.near_storage.throughput import series_of
from tests.reports import invented_near_storage as invented
from tests.reports.invented_near_storage import FETCH, LINES, PARSED, V2, near_storage_run


@pytest.fixture(scope="module")
def run() -> Run:
    return near_storage_run()


def crossing(bytes_per_s: float) -> float:
    """Return the share, in percent, at which the lines of the two ways cross. Reports interpolate in the same way."""
    shares = [percent / 1000 for percent in range(1001)]
    wire = {way: [invented.wire_bytes(way, share) / bytes_per_s * 1e9 for share in shares] for way in (V2, FETCH)}
    working = {way: [invented.wall_ns(way, share, "") for share in shares] for way in (V2, FETCH)}
    slower = [
        share
        for place, share in enumerate(shares)
        if wire[V2][place] + working[V2][place] > wire[FETCH][place] + working[FETCH][place]
    ]
    return 100 * slower[0]


def test_at_the_bandwidth_of_a_network_the_measured_times_are_compared(run: Run) -> None:
    found = {each.place: each for each in break_evens(summarise(run.samples), LINES["100mbit"])}
    assert not found["clustered"].computed
    assert found["clustered"].way == "V2 (byte ranges)"
    assert found["clustered"].below is not None
    assert found["clustered"].below.median == pytest.approx(crossing(LINES["100mbit"]), abs=5)
    assert found["scattered"].always
    told = list(sentences(found.values()))  # type: ignore[arg-type]
    assert "over loopback at 100 Mbit/s" in told[0]
    assert "under 8" in told[0]
    assert "at every measured share, 1 to 10 %" in told[1]


def test_the_longest_time_is_the_lowest_rate(run: Run) -> None:
    for series in series_of(summarise(run.samples)):
        for rate in (each.gb_per_s for each in series.measured):
            assert rate.low is not None
            assert rate.high is not None
            assert rate.minimum <= rate.low <= rate.median <= rate.high <= rate.maximum
            assert rate.minimum < rate.maximum


@pytest.mark.parametrize("bytes_per_s", [3e6, 40e6, 400e6])
def test_at_another_one_the_bytes_on_the_wire_are_added_to_loopback(run: Run, bytes_per_s: float) -> None:
    """Times on loopback already include the time to send the bytes over loopback."""
    (found, _) = break_evens(summarise(run.samples), bytes_per_s)
    assert found.computed
    assert found.below is not None
    assert found.below.median == pytest.approx(crossing(bytes_per_s), abs=5)


def test_without_a_bandwidth_each_narrow_network_is_reported(run: Run) -> None:
    assert {each.over for each in break_evens(summarise(run.samples))} == {"loopback at 100 Mbit/s"}


def test_both_ways_and_a_network_are_needed(run: Run) -> None:
    without = [sample for sample in run.samples if sample.variant != FETCH]
    local = [sample for sample in run.samples if not sample.conditions.network]
    for samples in (without, local, ()):
        assert break_evens(summarise(samples), 3e6) == []
    of_lines = [sample for sample in run.samples if sample.conditions.network != "loopback"]
    assert break_evens(summarise(of_lines), 3e6) == []


def test_few_rounds_give_no_verdict() -> None:
    found = break_evens(summarise(near_storage_run(rounds=2).samples), LINES["100mbit"])
    assert all("too few rounds" in told for told in sentences(found))
    assert found


def test_fetching_that_is_always_faster_is_reported(run: Run) -> None:
    slow = tuple(
        changed(sample, figures={**sample.figures, "wall_ns": sample.figures["wall_ns"] * 20_000})
        if sample.variant != FETCH and sample.operation != "save"
        else sample
        for sample in run.samples
    )
    told = list(sentences(break_evens(summarise(replace(run, samples=slow).samples), LINES["100mbit"])))
    assert all("never beats" in each for each in told)
    assert told


def test_a_way_for_comparison_only_is_never_named(run: Run) -> None:
    fast = tuple(
        changed(sample, figures={**sample.figures, "wall_ns": sample.figures["wall_ns"] // 10})
        if sample.variant == PARSED and sample.operation != "save"
        else sample
        for sample in run.samples
    )
    found = break_evens(summarise(fast), LINES["100mbit"])
    assert {each.way for each in found} <= {"V2 (byte ranges)", "V1 (rows)"}
    assert found


def test_without_a_verdict_the_first_way_is_named_in_any_order_of_measurement() -> None:
    samples = near_storage_run(rounds=2).samples
    for ordered in (samples, sorted(samples, key=lambda sample: sample.variant)):
        assert {each.way for each in break_evens(summarise(ordered), LINES["100mbit"])} == {"V2 (byte ranges)"}
