"""Takes, scans and appends in a chain: correct results count, and wrong results are found (rules 11 and 19)."""

from __future__ import annotations

import pytest

from bench_runner.operations import READ_ALL
from bench_runner.operations.operation import REPETITIONS
from bench_runner.results.records import Sample
from bench_runner.worker.sampling.block import calls_that_fit
from tests.bench_runner.conftest import Executor

pytestmark = pytest.mark.usefixtures("at_rest")

TAKE = "take[rows=20,handle=kept]"
SCAN = "scan[selectivity=0.1,kind=range]"
APPEND = "append[rows=50]"


def only(run_faulty: Executor, fault: str, operation: str) -> Sample:
    samples = run_faulty(fault, operations=("save", operation), wanted=(operation,))
    assert samples[1].operation == operation
    return samples[1]


def fitting(sample: Sample, threads: int = 1) -> int:
    """Return the number of calls in a block: all, unless the first call was so slow on a busy machine that
    fewer fit."""
    figures = sample.figures
    shorter = "fewer streams" if threads > 1 else ""
    return calls_that_fit(figures["first_ns"], figures["result_bytes"], shorter=shorter, threads=threads)


@pytest.mark.rule(19)
def test_a_take_is_a_block_of_calls(run_faulty: Executor) -> None:
    sample = only(run_faulty, "takes", TAKE)
    assert sample.failure is None
    assert sample.fidelity == "exact"
    figures = sample.figures
    calls = fitting(sample)
    assert 0 < figures["repetitions"] == calls <= REPETITIONS
    assert 0 < figures["wall_ns"] <= figures["p90_ns"]
    assert figures["calls_ns"] >= calls * figures["wall_ns"] / 2
    assert figures["first_ns"] > 0
    assert figures["open_ns"] >= 0
    assert 0 < figures["empty_ns"] < figures["wall_ns"]
    # The answer is 20 rows of the columns, not the whole table.
    assert 20 * 8 <= figures["result_bytes"] < 20 * 200
    assert figures["asked_bytes"] > figures["result_bytes"]
    assert not sample.cached
    assert sample.fallback == ""


def test_without_a_call_for_it_everything_is_read_for_each_call(run_faulty: Executor) -> None:
    sample = only(run_faulty, "none", TAKE)
    assert sample.failure is None
    assert sample.fallback == READ_ALL
    assert "open_ns" not in sample.figures


@pytest.mark.parametrize(
    "spelled", ["take[rows=20,handle=reopened]", "take[rows=3,pattern=zipf,handle=kept,columns=2]"]
)
def test_other_takes_are_verified_too(run_faulty: Executor, spelled: str) -> None:
    assert only(run_faulty, "takes", spelled).fidelity == "exact"
    assert only(run_faulty, "take_drops_one", spelled).failure is not None


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("take_sorted", "row "),
        ("take_drops_one", "call 1 returned 19 rows, expected 20"),
        # Only one of the thirty-one answers is wrong.
        ("take_of_the_call_before", "row "),
    ],
)
@pytest.mark.rule(19)
def test_one_wrong_call_voids_the_sample(run_faulty: Executor, fault: str, words: str) -> None:
    sample = only(run_faulty, fault, TAKE)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"
    assert words in sample.failure.reason
    assert not sample.figures


def test_a_copy_that_is_replaced_meanwhile_is_refused(run_faulty: Executor) -> None:
    """Even if the new copy has the same bytes, it is unknown which of the two was read."""
    sample = only(run_faulty, "take_replaces_the_copy", TAKE)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"
    assert "was replaced or changed while it was read" in sample.failure.reason


@pytest.mark.parametrize("fault", ["take_keeps_what_it_has_read", "take_keeps_what_the_first_call_read"])
@pytest.mark.rule(19)
def test_a_handle_that_keeps_what_it_has_read_is_marked(run_faulty: Executor, fault: str) -> None:
    sample = only(run_faulty, fault, TAKE)
    assert sample.failure is None
    assert sample.cached


def test_a_handle_that_holds_memory_and_reads_all_again_is_no_cache(run_faulty: Executor) -> None:
    """pyarrow's Parquet reader does so: it holds a footer and the buffers of the last call."""
    sample = only(run_faulty, "take_holds", TAKE)
    assert sample.failure is None
    assert not sample.cached


def test_a_handle_that_maps_the_copy_asks_for_nothing_and_is_no_cache(run_faulty: Executor) -> None:
    sample = only(run_faulty, "take_maps", TAKE)
    assert sample.failure is None
    assert sample.figures["asked_bytes"] < 128
    assert not sample.cached


def test_sorted_numbers_hide_a_take_that_sorts(run_faulty: Executor) -> None:
    """For this reason unsorted row numbers are the default."""
    assert only(run_faulty, "take_sorted", "take[rows=20,order=sorted,handle=kept]").failure is None


@pytest.mark.parametrize("fault", ["scans", "none"])
@pytest.mark.parametrize("operation", [SCAN, "scan[selectivity=0.1,kind=range,columns=2]"])
def test_a_scan_gives_what_meets_its_condition(run_faulty: Executor, fault: str, operation: str) -> None:
    sample = only(run_faulty, fault, operation)
    assert sample.failure is None
    assert sample.fidelity == "exact"
    assert sample.fallback == ("" if fault == "scans" else READ_ALL)


@pytest.mark.parametrize("fault", ["scan_drops_nulls", "scan_drops_the_last", "scan_unordered"])
def test_a_scan_that_gives_other_rows_is_found(run_faulty: Executor, fault: str) -> None:
    sample = only(run_faulty, fault, SCAN)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"


def test_a_condition_that_the_data_cannot_give_is_refused(run_faulty: Executor) -> None:
    sample = only(run_faulty, "scans", "scan[selectivity=0.9,kind=null]")
    assert sample.failure is not None
    assert sample.failure.kind == "refused"
    assert "null condition that selects about 0.9 of the rows" in sample.failure.reason


def test_an_append_is_verified_whole_and_leaves_the_copy_as_it_was(run_faulty: Executor) -> None:
    samples = run_faulty("appends", operations=("save", APPEND, "read"))
    assert [sample.failure for sample in samples] == [None, None, None]
    figures = samples[1].figures
    assert 0 < figures["growth_bytes"] < samples[0].figures["size_bytes"] / 10
    assert figures["sync_ns"] >= 0
    assert samples[1].fallback == ""


def test_what_cannot_grow_is_written_anew(run_faulty: Executor) -> None:
    sample = only(run_faulty, "none", APPEND)
    assert sample.failure is None
    assert sample.fallback == "rewrite"
    assert sample.figures["growth_bytes"] > 0


@pytest.mark.parametrize("fault", ["append_replaces", "append_before", "append_twice"])
def test_an_append_that_does_something_else_is_found(run_faulty: Executor, fault: str) -> None:
    samples = run_faulty(fault, operations=("save", APPEND, "read"))
    assert [sample.failure and sample.failure.kind for sample in samples] == [None, "mismatch", None]
