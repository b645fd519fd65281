"""Document stores in a chain. The results of a correct store count. A planted fault is found by an operation that it
affects, leaves no figures there, and does not affect other operations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.operations import READ_ALL
from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher
from bench_runner.worker.settle import Settler
from data_generator.cache import StoredDataset, prepare
from data_generator.catalogue import resolve
from document_stores.shared import postgresql_server
from tests.bench_runner.conftest import WORKER_TIMEOUT_S, chain_of

pytestmark = pytest.mark.usefixtures("at_rest")

TWEETS, EVENTS = 400, 750
READING = ("read", "get[documents=20]", "fields[paths=2]")
RANGES = ("range[selectivity=0.01,paths=2,by=scan]", "range[selectivity=0.01,paths=2,by=index]")
INGEST = "ingest[updates=0.5,indexes=2]"
Runner = Callable[..., list[Sample]]


@pytest.fixture(scope="module")
def workers(faulty: None) -> Iterator[Launcher]:
    made = Launcher(isolate="forkserver", threads=None, preload=["faulty-documents", "postgresql-jsonb"])
    yield made
    made.close()


@pytest.fixture(scope="module")
def data(cache_folder: Path) -> dict[str, StoredDataset]:
    rows = {"tweets-2016": TWEETS, "bluesky-events": EVENTS}
    return {name: prepare(resolve(name, {}, rows=count), cache_folder) for name, count in rows.items()}


@pytest.fixture
def run(workers: Launcher, data: dict[str, StoredDataset], tmp_path: Path) -> Runner:
    (tmp_path / "work").mkdir()
    bench = Bench(workers, Settler(tmp_path / "work"), tmp_path / "work", timeout_s=WORKER_TIMEOUT_S, machine="test")

    def run(
        spelled: str, *operations: str, dataset: str = "tweets-2016", cache: str = "warm", rows: int | None = None
    ) -> list[Sample]:
        chain = chain_of(spelled, "documents", ("save", *operations), cache=cache)
        chain = replace(chain, suite="documents", dataset=dataset)
        stored = data[dataset]
        need_bytes = stored.size_bytes
        number = int(rows is None)
        return execute(
            bench, chain, stored, rows=rows or stored.rows, round_number=number, position=0, need_bytes=need_bytes
        )

    return run


def test_every_question_is_prepared_for_before_the_clock(run: Runner) -> None:
    """Users translate their queries in advance, so all plans of a range and the plan of a question are prepared
    untimed."""
    spelled = "faulty-documents[fault=answers_what_it_was_prepared_for_alone]"
    samples = run(spelled, *RANGES, "ask[query=q1]", dataset="bluesky-events")
    assert [sample.failure for sample in samples] == [None] * len(samples)


def test_all_operations_of_a_right_store_are_verified(run: Runner, data: dict[str, StoredDataset]) -> None:
    samples = run("faulty-documents[fault=none]", *READING, *RANGES, INGEST, "ask[query=q1]")
    assert [sample.failure for sample in samples] == [None] * len(samples)
    assert {sample.fidelity for sample in samples[1:]} == {"exact"}
    save, ingest = samples[0].figures, samples[-2].figures
    assert 0 < save["accepted_ns"] <= save["engine_ns"] <= save["wall_ns"]
    lines_bytes = data["tweets-2016"].size_bytes
    assert 0.9 * lines_bytes < save["input_bytes"] <= lines_bytes
    assert save["size_bytes"] > 0.9 * lines_bytes
    assert 0 < ingest["accepted_ns"] <= ingest["engine_ns"] <= ingest["wall_ns"]
    assert ingest["growth_bytes"] > 0


def test_what_is_answered_from_memory_is_marked(run: Runner) -> None:
    """All calls of `ask` repeat the same question. A store that caches the answer, or has read everything before, reads
    nothing."""
    of_events = {"dataset": "bluesky-events"}
    reads = run("faulty-documents[fault=reads_the_file_to_answer]", "ask[query=q1]", **of_events)[1]
    remembers = run("faulty-documents[fault=remembers_its_answers]", "ask[query=q1]", "get[documents=20]", **of_events)
    # The metadata may contain the number of documents, so counting need not read them.
    counts = run("faulty-documents[fault=none]", "ask[query=q1]")[1]
    samples = [reads, *remembers[1:3], counts]
    assert [sample.failure for sample in samples] == [None] * len(samples)
    assert [sample.cached for sample in samples] == [False, True, True, False]


def test_what_raw_io_gives_is_the_text(run: Runner, data: dict[str, StoredDataset]) -> None:
    save, read = run("documents-raw-io", "read")
    assert (save.failure, read.failure, read.fidelity) == (None, None, "exact")
    assert save.figures["size_bytes"] == save.figures["input_bytes"]


def test_a_store_without_calls_reads_everything_and_is_marked(run: Runner) -> None:
    asked = ("get[documents=20]", "ask[query=q2]")
    samples = run("json-lines", *asked, dataset="bluesky-events")
    assert [sample.failure for sample in samples] == [None] * len(samples)
    assert {sample.operation for sample in samples if sample.fallback == READ_ALL} == set(asked)


@pytest.mark.disk
def test_a_cold_store_is_asked_once(run: Runner) -> None:
    sample = run("faulty-documents[fault=none]", "get[documents=20]", "read", cache="cold")[1]
    assert sample.failure is None
    assert sample.figures["repetitions"] == 1


@pytest.mark.disk
@pytest.mark.rule(14)
def test_what_was_read_to_prepare_a_cold_question_is_read_again(run: Runner) -> None:
    save, *asked, _ = run("faulty-documents[fault=reads_the_file_to_prepare]", "ask[query=q1]", *RANGES, cache="cold")
    assert [sample.failure for sample in asked] == [None] * 3
    for sample in asked:
        assert sample.figures["device_read_bytes"] >= 0.9 * save.figures["size_bytes"]


@pytest.mark.disk
@pytest.mark.rule(14)
def test_a_store_whose_open_copy_holds_everything_cannot_be_asked_cold(run: Runner) -> None:
    _, *asked, _ = run("faulty-documents[fault=none]", "ask[query=q1]", *RANGES, cache="cold")
    failures = [(sample.failure.kind, sample.failure.reason[:24]) for sample in asked if sample.failure is not None]
    assert failures == [("cache", "a cold read fetched only")] * 3


@pytest.mark.parametrize(
    ("fault", "operation", "words"),
    [
        ("lost_upsert", INGEST, "the document of id"),
        ("previous_version", "get[documents=20]", "row 0: expected"),
        ("range_without_its_end", RANGES[1], "row 0: expected"),
        ("index_does_nothing", INGEST, "but the store has none"),
        ("index_not_kept_up", INGEST, "its index of"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                ("lost_delete", INGEST, "a document came back that was not stored"),
                ("get_in_other_order", "get[documents=20]", "row 0: expected"),
                ("get_finds_what_is_not_there", "get[documents=20]", "row 9: expected None"),
                ("fields_of_another_document", "fields[paths=2]", "the document of id"),
                ("counts_one_less", "ask[query=q1]", "row 0: expected"),
            )
        ),
    ],
)
def test_a_planted_fault_is_found(run: Runner, fault: str, operation: str, words: str) -> None:
    save, faulty, read = run(f"faulty-documents[fault={fault}]", operation, "read")
    assert faulty.failure is not None
    assert faulty.failure.kind == "mismatch"
    assert words in faulty.failure.reason
    assert not faulty.figures
    assert (save.failure, read.failure) == (None, None)


@pytest.mark.parametrize("fault", ["index_does_nothing", "scans_in_spite_of_its_index"])
def test_a_range_by_index_that_scans_has_no_figures(run: Runner, fault: str) -> None:
    save, scan, by_index, read = run(f"faulty-documents[fault={fault}]", *RANGES, "read")
    assert by_index.failure is not None
    assert by_index.failure.kind == "refused"
    assert f"1% of {TWEETS} documents; use by=scan" in by_index.failure.reason
    assert not by_index.figures
    assert (save.failure, scan.failure, read.failure) == (None, None, None)


def test_a_setting_that_shows_nothing_has_no_figures(run: Runner) -> None:
    """In a pilot round it has figures, because they predict the time for many documents."""
    spelled = "document-store[layout=vector,merges=late]"
    samples = run(spelled, "read", "ingest[updates=0.5,indexes=none]")
    assert {sample.failure and sample.failure.kind for sample in samples} == {"refused"}
    assert all(sample.failure is not None and "no merge waits" in sample.failure.reason for sample in samples)
    assert not any(sample.figures for sample in samples)
    pilot = run(spelled, "read", "ingest[updates=0.5,indexes=none]", rows=TWEETS // 2)
    assert [sample.failure for sample in pilot] == [None] * len(pilot)


@pytest.mark.parametrize(
    ("variant", "operations"),
    [
        ("sqlite-json", (RANGES[1], INGEST)),
        ("document-store[layout=amax]", (RANGES[1], INGEST)),
        ("document-store[layout=vector]", (INGEST,)),
        ("document-store[layout=open]", (RANGES[1],)),
    ],
)
def test_stores_take_their_indexes_and_keep_them(run: Runner, variant: str, operations: tuple[str, ...]) -> None:
    samples = run(variant, *operations)
    assert [sample.failure for sample in samples] == [None] * len(samples)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("null_is_missing", "the document of id"),
        ("integers_become_doubles", "the document of id"),
        pytest.param("one_document_twice", "was not stored, or twice", marks=pytest.mark.slow),
    ],
)
def test_documents_that_come_back_otherwise_leave_no_figures_of_the_save(run: Runner, fault: str, words: str) -> None:
    samples = run(f"faulty-documents[fault={fault}]", "read")
    assert all(sample.failure is not None and words in sample.failure.reason for sample in samples)


@pytest.mark.parametrize("fault", ["drops_nulls", pytest.param("changes_when_asked_again", marks=pytest.mark.slow)])
def test_a_wrong_answer_to_a_question_is_found(run: Runner, fault: str) -> None:
    samples = run(f"faulty-documents[fault={fault}]", "ask[query=q1]", "read", dataset="bluesky-events")
    assert [sample.failure and sample.failure.kind for sample in samples] == [None, "mismatch", None]


@pytest.mark.disk
@pytest.mark.slow
@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_a_store_behind_a_server_is_measured_like_any_other(run: Runner, cache: str) -> None:
    if postgresql_server.version() is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no PostgreSQL here")
    # Ingesting makes a separate copy, so the page cache of the stored copy does not matter. It is measured only warm.
    asked = ("read", "get[documents=20]", *(["ask[query=q1]", RANGES[1], INGEST] if cache == "warm" else []))
    samples = run("postgresql-jsonb", *asked, dataset="bluesky-events", cache=cache)
    assert [sample.failure for sample in samples] == [None] * len(samples)
    assert {sample.fidelity for sample in samples[1:]} == {"exact"}
    save, read = (sample.figures for sample in samples[:2])
    assert 0 < save["accepted_ns"] < save["engine_ns"] <= save["wall_ns"]
    # The files of an empty server take 40 MB. Its processes count as the worker's.
    assert 100_000 < save["size_bytes"] < 4_000_000
    if cache == "warm":
        assert 0 < samples[-1].figures["growth_bytes"] < 8_000_000
    assert read["cpu_ns"] > 0
    # The worker's counters do not include the server's reads, and the server's buffers hold all data after the first
    # call.
    cached = {sample.cached for sample in samples if sample.operation in (READING[1], RANGES[1])}
    assert cached == {cache == "warm"}
    assert (read["device_read_bytes"] > 0.9 * save["size_bytes"]) == (cache == "cold")
