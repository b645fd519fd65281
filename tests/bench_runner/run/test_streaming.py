"""Streams in a chain: correct results count. Batches that are wrong, missing, doubled or moved are found, even if the
fault occurs only in the timed call (rule 11)."""

from __future__ import annotations

import pytest

from bench_runner.operations import READ_ALL
from bench_runner.operations.streams.tables import SAVE_ALL
from bench_runner.results.records import Sample
from tests.bench_runner.conftest import Executor

pytestmark = pytest.mark.usefixtures("at_rest")

READ = "stream-read[rows=3000]"
SAVE = "stream-save[rows=3000]"
ROWS, BATCHES = 20_000, 7


def only(run_faulty: Executor, fault: str, operation: str) -> Sample:
    samples = run_faulty(fault, operations=("save", operation), wanted=(operation,))
    assert samples[1].operation == operation
    return samples[1]


@pytest.mark.parametrize(("fault", "fallback"), [("streams", ""), ("none", READ_ALL)])
def test_a_stream_is_read_and_compared_whole(run_faulty: Executor, fault: str, fallback: str) -> None:
    sample = only(run_faulty, fault, READ)
    assert sample.failure is None
    assert (sample.fidelity, sample.fallback) == ("exact", fallback)
    figures = sample.figures
    assert figures["batches_count"] == BATCHES
    # A row has an integer, two floats and text.
    assert figures["result_bytes"] > ROWS * 3 * 8
    parts = sum(figures[name] for name in ("engine_ns", "convert_ns", "touch_ns"))
    assert 0 < parts <= figures["wall_ns"]
    assert figures["paused_ns"] > 0


@pytest.mark.parametrize(("fault", "fallback"), [("streams", ""), ("none", SAVE_ALL)])
def test_a_stream_is_saved_next_to_the_copy_and_compared_whole(run_faulty: Executor, fault: str, fallback: str) -> None:
    samples = run_faulty(fault, operations=("save", SAVE, "read"))
    assert [sample.failure for sample in samples] == [None, None, None]
    sample = samples[1]
    assert (sample.fidelity, sample.fallback) == ("exact", fallback)
    # Batches of the stream also end where batches of the cached data end.
    assert BATCHES <= sample.figures["batches_count"] <= BATCHES + 1
    assert sample.figures["growth_bytes"] > ROWS * 3 * 8
    assert sample.figures["sync_ns"] > 0
    assert sample.figures["paused_ns"] > 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("stream_read_drops_a_batch", "rows: stored 20,000, came back 18,000"),
        ("stream_read_doubles_a_batch", "rows: stored 20,000, came back 23,000"),
        ("stream_read_reorders_batches", "row 0: "),
        ("stream_read_changes_a_value", "row 4500: "),
        ("stream_read_gives_larger_batches", "a batch has 20,000 rows, not 1 to 3,000"),
        ("stream_read_gives_empty_batches", "a batch has 0 rows, not 1 to 3,000"),
        ("stream_read_changes_a_value_once", "second reading"),
        ("stream_read_stops_once", "second reading"),
    ],
)
def test_a_stream_that_gives_something_else_is_found(run_faulty: Executor, fault: str, words: str) -> None:
    sample = only(run_faulty, fault, READ)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"
    assert words in sample.failure.reason
    assert not sample.figures


@pytest.mark.parametrize(
    "fault",
    [
        "stream_save_drops_a_batch",
        "stream_save_doubles_a_batch",
        "stream_save_reorders_batches",
        "stream_save_by_another_codec",
    ],
)
def test_a_saved_stream_that_is_something_else_is_found(run_faulty: Executor, fault: str) -> None:
    samples = run_faulty(fault, operations=("save", SAVE, "read"))
    assert [sample.failure and sample.failure.kind for sample in samples] == [None, "mismatch", None]


@pytest.mark.parametrize(
    ("fault", "operation", "words"),
    [
        ("stream_read_breaks", READ, "OSError: the file ended in the middle of a batch"),
        ("stream_save_breaks", SAVE, "OSError: the device went away"),
    ],
)
def test_a_stream_that_breaks_costs_its_own_cell(run_faulty: Executor, fault: str, operation: str, words: str) -> None:
    samples = run_faulty(fault, operations=("save", operation, "read"))
    assert [sample.failure and sample.failure.kind for sample in samples] == [None, "error", None]
    assert words in str(samples[1].failure)
