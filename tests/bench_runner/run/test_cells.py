"""Several operations share one stored copy. A failure costs the operation's own cell, or all cells if the copy may be
wrong."""

from __future__ import annotations

import pytest

from bench_runner.operations import READ_ALL
from bench_runner.results.records import Sample
from bench_runner.results.statistics import summarise
from bench_runner.run.chains import Bench
from tests.bench_runner.conftest import Executor

pytestmark = pytest.mark.usefixtures("at_rest")

PROJECT = "project[columns=2]"
ALL = ("save", "read", PROJECT)


def reasons(samples: list[Sample]) -> list[str | None]:
    """Return the kind of failure of each sample, or None if it has figures."""
    for sample in samples:
        assert (sample.failure is None) == bool(sample.figures)
    return [sample.failure and sample.failure.kind for sample in samples]


def test_a_good_chain_gives_a_verified_sample_of_each_operation(run_faulty: Executor) -> None:
    samples = run_faulty("projects", operations=ALL)
    assert [sample.operation for sample in samples] == [*ALL]
    assert reasons(samples) == [None, None, None]
    assert [sample.saw_all for sample in samples] == [False, True, False]
    assert [sample.fidelity for sample in samples] == [None, "exact", "exact"]
    assert not any(sample.in_service or sample.fallback for sample in samples)
    assert len(summarise(samples)) == 3


PROJECTIONS = {
    "project_crashes": ("crash", "SIGKILL"),
    "project_raises": ("error", "no columns today"),
    "project_wrong_columns": ("mismatch", "columns differ: column"),
    "project_wrong_order": ("mismatch", "columns differ: column"),
    "project_wrong_values": ("mismatch", "row 3"),
}


@pytest.mark.parametrize("fault", PROJECTIONS)
def test_a_projection_that_fails_costs_only_its_own_cell(run_faulty: Executor, fault: str) -> None:
    kind, words = PROJECTIONS[fault]
    samples = run_faulty(fault, operations=ALL)
    assert reasons(samples) == [None, None, kind]
    assert samples[2].failure is not None
    assert words in samples[2].failure.reason
    rounds = {cell.operation: summary.rounds for cell, summary in summarise(samples).items()}
    assert rounds == {"save": 1, "read": 1, PROJECT: 0}


@pytest.mark.parametrize("operations", [ALL, ("save", PROJECT, "read")])
def test_a_read_that_finds_something_else_voids_the_whole_chain(
    run_faulty: Executor, operations: tuple[str, ...]
) -> None:
    """It is then unknown what was stored, even if other operations returned the right answer."""
    samples = run_faulty("project_beside_a_read_that_drops", operations=operations)
    found = dict(zip(operations, reasons(samples), strict=True))
    assert found == {"save": "skipped", "read": "mismatch", PROJECT: "skipped"}
    assert not any(summary.rounds for summary in summarise(samples).values())


@pytest.mark.parametrize("operations", [ALL, ("save", PROJECT, "read")])
def test_a_read_that_crashes_takes_the_figures_of_the_save_and_leaves_those_of_others(
    run_faulty: Executor, operations: tuple[str, ...]
) -> None:
    """The save counts as not verified, because its read crashed. The projected columns were compared successfully."""
    samples = run_faulty("project_beside_a_read_that_exits", operations=operations)
    found = dict(zip(operations, reasons(samples), strict=True))
    assert found == {"save": "skipped", "read": "crash", PROJECT: None}
    rounds = {cell.operation: summary.rounds for cell, summary in summarise(samples).items()}
    assert rounds == {"save": 0, "read": 0, PROJECT: 1}


@pytest.mark.parametrize(
    ("fault", "kind", "other"), [("raises", "error", "skipped"), ("refuses", "refused", "refused")]
)
def test_a_save_that_fails_leaves_nothing_to_read(run_faulty: Executor, fault: str, kind: str, other: str) -> None:
    assert reasons(run_faulty(fault, operations=ALL)) == [kind, other, other]


def test_the_save_of_a_projection_is_verified_by_a_read_in_service(run_faulty: Executor) -> None:
    samples = run_faulty("projects", operations=("save", PROJECT))
    assert [sample.operation for sample in samples] == ["save", PROJECT, "read"]
    assert [sample.in_service for sample in samples] == [False, False, True]
    assert reasons(samples) == [None, None, None]
    assert samples[2].saw_all
    assert samples[2].fidelity == "exact"
    found = summarise(samples)
    assert {cell.operation: summary.rounds for cell, summary in found.items()} == {"save": 1, PROJECT: 1}


def test_a_save_whose_read_in_service_fails_has_no_figures(run_faulty: Executor) -> None:
    samples = run_faulty("project_beside_a_read_that_exits", operations=("save", PROJECT))
    assert reasons(samples) == ["skipped", None, "crash"]
    assert samples[0].failure is not None
    assert "not verified, because the read failed" in samples[0].failure.reason
    assert "read" not in {cell.operation for cell in summarise(samples)}
    samples = run_faulty("project_beside_a_read_that_drops", operations=("save", PROJECT))
    assert reasons(samples) == ["skipped", "skipped", "mismatch"]


def test_only_what_is_wanted_is_executed_with_what_that_needs(run_faulty: Executor) -> None:
    """A save that is executed only for other operations is in service.

    A read that verifies a requested save is counted if the chain includes the read.
    """
    projected = run_faulty("projects", operations=ALL, wanted=(PROJECT,))
    assert [(sample.operation, sample.in_service) for sample in projected] == [("save", True), (PROJECT, False)]
    assert reasons(projected) == [None, None]
    assert {cell.operation for cell in summarise(projected)} == {PROJECT}
    saved = run_faulty("projects", operations=ALL, wanted=("save",))
    assert [(sample.operation, sample.in_service) for sample in saved] == [("save", False), ("read", False)]
    assert [summary.rounds for summary in summarise(saved).values()] == [1, 1]


@pytest.mark.parametrize("target", ["arrow", "pandas"])
def test_a_sample_records_the_fallback_of_an_engine_without_a_call(run_faulty: Executor, target: str) -> None:
    save, read, project = run_faulty("none", operations=ALL, target=target)
    assert reasons([save, read, project]) == [None, None, None]
    assert (save.fallback, read.fallback, project.fallback) == ("", "", READ_ALL)
    summaries = {cell.operation: summary for cell, summary in summarise([save, read, project]).items()}
    assert {name: summary.fallback for name, summary in summaries.items()} == {
        "save": "",
        "read": "",
        PROJECT: READ_ALL,
    }


@pytest.mark.disk
@pytest.mark.parametrize("fault", ["none", "projects"])
@pytest.mark.rule(14)
def test_a_projection_on_a_cold_cache_is_proven_cold(run_faulty: Executor, bench: Bench, fault: str) -> None:
    """The read before put the whole copy into the page cache. The file system must be on a device (rule 14)."""
    samples = run_faulty(fault, operations=ALL, cache="cold")
    assert reasons(samples) == [None, None, None]
    for sample in samples[1:]:
        assert sample.figures["resident_before_bytes"] == 0
        assert sample.figures["device_read_bytes"] > 0
