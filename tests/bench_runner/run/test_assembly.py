"""Assemble a sample from a worker's answer and the launcher's observations. Nothing is executed here."""

from __future__ import annotations

from typing import Any

import pytest

from bench_runner.errors import OperationFailed
from bench_runner.results.records import Conditions, Sample
from bench_runner.run.assembly import assembled, refuse_more_than_one_core
from bench_runner.run.launcher import Outcome
from bench_runner.run.page_cache import Residency
from bench_runner.run.services.monitor import ServiceMonitor
from bench_runner.worker.messages import Measured
from bench_runner.worker.settle import Control, Readiness, Rest
from tests.bench_runner.run.invented import chain, sample

MB = 10**6
REST = Rest(Control(3, 4), settled=True, settle_ns=20)
NEVER = Readiness(False, "nothing was taken back")
WHOLE = Residency(100 * MB, 100 * MB)


def answer(**changes: Any) -> Measured:
    """Return the answer of a worker whose call took 1,000 ns and read nothing from the device."""
    figures = {"wall_ns": 1_000, "cpu_ns": 900, "peak_rss_bytes": 50, "device_read_bytes": 0}
    given: dict[str, Any] = {
        "started_ns": 100,
        "private_before_bytes": 10,
        "private_end_bytes": 10,
        "resident_before_bytes": 30,
        "rest": REST,
        "collected": False,
    }
    return Measured(**given | changes | {"figures": figures | changes.get("figures", {})})


def sample_of(
    measured: Measured,
    outcome: Outcome | None = None,
    *,
    operation: str = "read",
    readiness: Readiness = NEVER,
    **given: Any,
) -> Sample:
    blank = sample(chain(conditions=Conditions(**given.pop("conditions", {}))), operation)
    return assembled(blank, measured, outcome or Outcome(launched_ns=60), readiness=readiness, **given)


def test_what_the_worker_and_the_runner_saw_are_one_sample() -> None:
    measured = answer(fidelity="exact", saw_all=True, losses=["nulls"], codec="zstd", encodings=["plain"])
    found = sample_of(measured, Outcome(launched_ns=60, peak_private_bytes=25), cached=WHOLE)
    assert found.figures == {
        "resident_before_bytes": 100 * MB,
        "wall_ns": 1_000,
        "cpu_ns": 900,
        "peak_rss_bytes": 50,
        "device_read_bytes": 0,
        "peak_private_bytes": 15,
        "prepare_ns": 20,
        "settle_ns": 20,
        "control_write_ns": 3,
        "control_allocate_ns": 4,
    }
    assert (found.fidelity, found.saw_all, found.losses) == ("exact", True, ("nulls",))
    assert (found.codec, found.encodings, found.warnings, found.unsettled) == ("zstd", ("plain",), (), False)


def test_memory_of_child_processes_counts_and_incomparable_memory_is_left_out() -> None:
    outcome = Outcome(peak_tree_resident_bytes=500, peak_private_bytes=80)
    figures = sample_of(answer(), outcome, cached=WHOLE).figures
    assert (figures["peak_rss_bytes"], figures["peak_private_bytes"]) == (470, 70)
    assert "peak_private_bytes" not in sample_of(answer(tells_memory=False), outcome, cached=WHOLE).figures


def test_a_save_has_the_sizes_of_its_copy_and_no_page_cache() -> None:
    sizes = {"size_bytes": 7, "allocated_bytes": 512, "files_count": 1}
    figures = sample_of(answer(figures={"device_read_bytes": 10**12}), operation="save", sizes=sizes).figures
    assert figures.items() >= sizes.items()
    assert "resident_before_bytes" not in figures


def not_counted(**given: Any) -> str:
    """Return the reason why a sample is not counted, or '' if it is counted."""
    found = sample_of(given.pop("measured"), cached=WHOLE, **given)
    assert found.unsettled == bool(found.warnings)
    return " ".join(found.warnings).removeprefix("not counted, ")


@pytest.mark.rule(14)
def test_a_sample_that_is_not_counted_has_the_first_reason() -> None:
    restless = Rest(Control(3, 4), settled=False, settle_ns=20, why_not="a write took long")
    fetched: dict[str, Any] = {"figures": {"device_read_bytes": 10 * MB}, "collected": True}
    assert not_counted(measured=answer()) == ""
    assert not_counted(measured=answer(rest=restless, **fetched)).startswith("the machine was not")
    assert not_counted(measured=answer(**fetched)).startswith("a warm read fetched 10,000,000 of")
    assert not_counted(measured=answer(collected=True)).startswith("a full garbage collection ran")


def test_all_calls_of_a_block_fetch_and_take_their_time() -> None:
    """5 MB are more than 1 % of the copy, but less than 1 MB for each second of the block's ten seconds."""
    block = answer(figures={"calls_ns": 10 * 10**9, "repetitions": 10}, device_bytes_of_all=5 * MB)
    assert not_counted(measured=block) == ""
    block.device_bytes_of_all = 10 * MB + 1
    assert not_counted(measured=block).startswith("a warm read fetched 10,000,001 of")


@pytest.mark.rule(14)
def test_a_cold_read_fetches_all_and_a_part_what_became_resident() -> None:
    cold = {"cache": "cold"}
    with pytest.raises(OperationFailed, match="fetched only 50,000,000 of 100,000,000"):
        not_counted(measured=answer(figures={"device_read_bytes": 50 * MB}), conditions=cold)
    part = answer(figures={"device_read_bytes": 5 * MB, "distinct_bytes": 5 * MB})
    assert not_counted(measured=part, operation="project[columns=2]", conditions=cold) == ""


def test_what_services_did_is_theirs_by_call_and_what_they_read_fetched_the_copy() -> None:
    services = ServiceMonitor([], None)
    services.figures = {
        "node_cpu_ns": 40,
        "node_device_bytes": 90 * MB,
        "wire_bytes": 80,
        "node_memory_bytes": 6,
        "node_peak_memory_bytes": 7,
    }
    services.device_bytes = 90 * MB
    block = answer(figures={"calls_ns": 4_000, "repetitions": 4}, device_bytes_of_all=0, cached=True, held_bytes=20)
    found = sample_of(block, cached=WHOLE, services=services, conditions={"cache": "cold", "network": "loopback"})
    assert (found.figures["node_cpu_ns"], found.figures["wire_bytes"]) == (10, 20)
    assert (found.figures["node_memory_bytes"], found.figures["node_peak_memory_bytes"]) == (6, 7)
    assert found.cached, "the wire carried no more than the client holds"
    block.held_bytes = 19
    assert not sample_of(block, cached=WHOLE, services=services, conditions={"network": "loopback"}).cached


def test_a_sample_warns_of_memory_that_was_not_ready_and_of_what_was_printed() -> None:
    readiness = Readiness(True, "was taken back", most_bytes=900 * MB)
    outcome = Outcome(peak_private_bytes=500 * MB, printed="deprecated\nsince 2.0")
    few, many = answer(figures={"dirtied_bytes": 400 * MB}), answer(figures={"dirtied_bytes": 401 * MB})
    printed = "the library printed: deprecated"
    assert sample_of(few, outcome, cached=WHOLE, readiness=readiness).warnings == (printed,)
    beyond, also_printed = sample_of(many, outcome, cached=WHOLE, readiness=readiness).warnings
    assert beyond.startswith("took more than the 900 MB of memory that are made ready")
    assert also_printed == printed
    assert sample_of(many, outcome, cached=WHOLE).warnings == (printed,), "this host takes nothing back"


@pytest.mark.rule(9)
def test_under_one_thread_a_sample_of_more_cores_is_refused() -> None:
    one, more = answer(figures={"cpu_ns": 1_040}), answer(figures={"cpu_ns": 1_060})
    assert sample_of(more, cached=WHOLE).failure is None
    assert sample_of(one, cached=WHOLE, conditions={"threads": "1"}).failure is None
    with pytest.raises(OperationFailed, match=r"used 1\.06 cores"):
        sample_of(more, cached=WHOLE, conditions={"threads": "1"})


def test_calls_are_held_to_one_core_by_their_mean() -> None:
    """One of three calls took 2.5 times as long as another, with the same CPU time."""
    calls = {"wall_ns": 100, "repetitions": 3, "calls_ns": 450}
    refuse_more_than_one_core({**calls, "cpu_ns": 150})
    with pytest.raises(OperationFailed, match=r"1\.06 cores"):
        refuse_more_than_one_core({**calls, "cpu_ns": 159})


def test_what_a_call_holds_at_its_end_is_in_its_peak() -> None:
    """A short call may end between two memory readings of the launcher."""
    measured = answer(private_before_bytes=10, private_end_bytes=50)
    assert Outcome(peak_private_bytes=0).added_bytes(measured) == 40
    assert Outcome(peak_private_bytes=70).added_bytes(measured) == 60
    measured.private_end_bytes = 5
    assert Outcome(peak_private_bytes=0).added_bytes(measured) == 0
