"""Warm and cold are proven for every sample that reads (rule 14)."""

from __future__ import annotations

import pytest

from bench_runner.errors import OperationFailed
from bench_runner.machine import linux
from bench_runner.run.chains import Bench
from bench_runner.run.launcher import Outcome
from bench_runner.run.page_cache import device_doubt
from bench_runner.worker.messages import MeasureTask
from tests.bench_runner.conftest import Executor
from tests.bench_runner.run.test_chains import Spying


@pytest.mark.disk
@pytest.mark.rule(14)
def test_cold_is_proven(run_faulty: Executor, bench: Bench) -> None:
    """The file system must be on a device.

    Elsewhere, a run with a cold cache is rejected before it starts (rule 14).
    """
    _, read = run_faulty("none", cache="cold")
    assert read.failure is None
    assert read.figures["resident_before_bytes"] == 0
    assert read.figures["device_read_bytes"] > 0


DEVICE_READS = [
    # requested state, bytes stored, bytes fetched from the device, seconds, whether these figures prove the state
    ("warm", 100_000_000, 1_000_000, 0.1, True),
    ("warm", 100_000_000, 1_000_001, 0.1, False),
    ("warm", 1_000_000, 256 * 1024, 0.1, True),
    ("warm", 1_000_000, 256 * 1024 + 1, 0.1, False),
    ("warm", 90_000_000, 5_000_000, 5.0, True),
    ("warm", 90_000_000, 5_000_001, 5.0, False),
    ("warm", 90_000_000, 9_000_000, 600.0, True),
    ("warm", 90_000_000, 9_000_001, 600.0, False),
    ("cold", 100_000_000, 90_000_000, 0.1, True),
    ("cold", 100_000_000, 89_999_999, 0.1, False),
    ("cold", 100_000_000, 0, 100.0, False),
]


@pytest.mark.parametrize(("wanted", "size_bytes", "fetched_bytes", "seconds", "proven"), DEVICE_READS)
@pytest.mark.rule(14)
def test_what_the_device_gave_proves_the_cache(
    wanted: str, size_bytes: int, fetched_bytes: int, seconds: float, proven: bool
) -> None:
    """Rule 14."""
    asked = {"needed_bytes": size_bytes, "size_bytes": size_bytes, "wall_ns": int(seconds * 1e9)}
    if wanted == "cold" and not proven:
        with pytest.raises(OperationFailed, match="a cold read fetched only") as raised:
            device_doubt(wanted, fetched_bytes=fetched_bytes, **asked)
        assert raised.value.failure.kind == "cache"
        return
    doubt = device_doubt(wanted, fetched_bytes=fetched_bytes, **asked)
    assert doubt == ("" if proven else f"a warm read fetched {fetched_bytes:,} of {size_bytes:,} bytes from the device")


@pytest.mark.parametrize(
    ("distinct_bytes", "fetched_bytes", "proven"),
    [(1_000_000, 900_000, True), (1_000_000, 899_999, False), (1_000_000, 75_000_000, True), (0, 0, False)],
)
@pytest.mark.rule(14)
def test_of_a_part_what_became_resident_came_from_the_device(
    distinct_bytes: int, fetched_bytes: int, proven: bool
) -> None:
    """Only the format knows how many bytes a partial read needs (rule 14)."""
    asked = {"needed_bytes": distinct_bytes, "size_bytes": 100_000_000, "wall_ns": 1_000}
    if proven:
        assert device_doubt("cold", fetched_bytes=fetched_bytes, **asked) == ""
        return
    with pytest.raises(OperationFailed, match=f"fetched only {fetched_bytes:,} of {max(distinct_bytes, 1):,} bytes"):
        device_doubt("cold", fetched_bytes=fetched_bytes, **asked)
    if distinct_bytes == 0:
        assert device_doubt("cold", fetched_bytes=0, served=True, **asked) == ""


@pytest.mark.disk
@pytest.mark.parametrize("operation", ["take[rows=20,handle=kept]", "project[columns=2]"])
@pytest.mark.rule(14)
def test_a_cold_part_is_proven_by_its_pages(run_faulty: Executor, bench: Bench, operation: str) -> None:
    fault = "takes" if operation.startswith("take") else "projects"
    _, sample = run_faulty(fault, cache="cold", operations=("save", operation), wanted=(operation,))
    assert sample.failure is None
    assert sample.figures["distinct_bytes"] > 0
    assert sample.figures["device_read_bytes"] > 0
    if operation.startswith("take"):
        # The second call would find its pages in the cache.
        assert sample.figures["repetitions"] == 1
        assert "first_ns" not in sample.figures


@pytest.mark.disk
@pytest.mark.rule(14)
def test_a_copy_that_has_left_the_page_cache_is_brought_back(run_faulty: Executor, bench: Bench) -> None:
    """Pages are loaded and checked before a warm read, because the copy may have left the cache (rule 14)."""
    left: list[int] = []

    def evict(task: MeasureTask, outcome: Outcome) -> None:
        if task.operation == "save":
            linux.evict_file(task.location)
            left.append(linux.resident_file_bytes(task.location))

    save, read = run_faulty("none", on=Spying(bench, evict).bench())
    assert left == [0]
    assert read.failure is None
    assert read.figures["resident_before_bytes"] == save.figures["size_bytes"]


def test_a_copy_that_does_not_stay_in_the_page_cache_is_no_warm_one(
    run_faulty: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux, "resident_file_bytes", lambda path: path.stat().st_size * 98 // 100)
    _, read = run_faulty("none")
    assert read.failure is not None
    assert read.failure.kind == "cache"
    assert "only 98% of the stored copy" in read.failure.reason


@pytest.mark.rule(14)
def test_a_copy_that_cannot_be_evicted_is_no_cold_one(run_faulty: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "evict_file", lambda path: None)
    _, read = run_faulty("none", cache="cold")
    assert read.failure is not None
    assert read.failure.kind == "cache"
    assert "cannot be evicted" in read.failure.reason
