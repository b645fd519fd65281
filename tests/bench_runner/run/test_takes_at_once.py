"""Takes by concurrent streams, and repeated projections: correct results count, and wrong results are found (rules 11
and 19)."""

from __future__ import annotations

import pytest

from bench_runner.operations.operation import REPETITIONS
from tests.bench_runner.conftest import Executor
from tests.bench_runner.run.test_selecting import fitting, only

pytestmark = pytest.mark.usefixtures("at_rest")

STREAMS = 4
TAKE = f"take[rows=20,handle=kept,streams={STREAMS}]"
PROJECT = "project[columns=2,handle=kept]"


@pytest.mark.parametrize("fault", ["take_by_streams", "take_by_streams_each"])
def test_streams_call_at_once(run_faulty: Executor, fault: str) -> None:
    """Streams share one handle, or have one handle each. A separate handle may raise an error if another thread uses
    it."""
    sample = only(run_faulty, fault, TAKE)
    assert sample.failure is None
    assert sample.fidelity == "exact"
    figures = sample.figures
    fit = fitting(sample, STREAMS)
    assert figures["repetitions"] == fit <= STREAMS * REPETITIONS
    assert figures["wall_ns"] == figures["calls_ns"] // figures["repetitions"]
    # Each call sleeps for 2 ms while calls of other streams sleep too.
    assert 2_000_000 < figures["latency_ns"] <= figures["p90_ns"]
    assert figures["calls_ns"] >= fit // STREAMS * 2_000_000
    assert figures["empty_ns"] > 0
    # The parts are measured by a call's own clock, so they do not add up to the call's share of the block.
    assert not {"engine_ns", "convert_ns", "touch_ns"} & set(figures)
    assert 20 * 8 <= figures["result_bytes"] < 20 * 200


@pytest.mark.parametrize(("fault", "cached"), [("take_by_streams", False), ("take_by_streams_keeps", True)])
@pytest.mark.rule(19)
def test_a_handle_that_keeps_what_streams_have_read_is_marked(run_faulty: Executor, fault: str, cached: bool) -> None:
    """Calls before and after the block are compared. Calls of the block overlap, so the block has no first half."""
    assert only(run_faulty, fault, TAKE).cached == cached


@pytest.mark.rule(19)
def test_a_handle_that_mixes_up_answers_of_streams_is_found(run_faulty: Executor) -> None:
    sample = only(run_faulty, "take_streams_mixed_up", TAKE)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"
    assert not sample.figures


def test_one_stream_alone_hides_that(run_faulty: Executor) -> None:
    """A single stream does not show the fault, so streams are measured and verified concurrently."""
    assert only(run_faulty, "take_streams_mixed_up", "take[rows=20,handle=kept]").failure is None


def test_a_call_that_fails_in_a_thread_is_the_samples_failure(run_faulty: Executor) -> None:
    sample = only(run_faulty, "take_streams_one_fails", TAKE)
    assert sample.failure is not None
    assert sample.failure.kind == "error"
    assert "one of many" in sample.failure.reason


def test_a_kept_handle_projects_other_columns_each_time(run_faulty: Executor) -> None:
    sample = only(run_faulty, "project_kept", PROJECT)
    assert sample.failure is None
    assert sample.fidelity == "exact"
    assert 0 < sample.figures["repetitions"] == fitting(sample) <= REPETITIONS
    assert sample.figures["open_ns"] >= 0
    assert sample.figures["first_ns"] > 0


@pytest.mark.rule(19)
def test_one_wrong_projection_of_many_voids_the_sample(run_faulty: Executor) -> None:
    """The result has the requested names, but the columns of the call before."""
    sample = only(run_faulty, "project_kept_gives_the_columns_before", PROJECT)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"


@pytest.mark.parametrize("fault", ["project_kept", "none"])
def test_reopened_projections_open_inside_each_clock(run_faulty: Executor, fault: str) -> None:
    sample = only(run_faulty, fault, "project[columns=2,handle=reopened]")
    assert sample.failure is None
    assert sample.fallback == ("" if fault == "project_kept" else "read-all")
    assert 0 < sample.figures["repetitions"] == fitting(sample) <= REPETITIONS
    assert "open_ns" not in sample.figures
