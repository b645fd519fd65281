"""The suites of training loops: the operations of each variant, and what is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_runner.operations import operation_of
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES
from data_generator.catalogue import resolve
from format_bench.api.planning import planned

SHUFFLED, BLOCKS, STORED, BUFFER = (
    f"batches[rows=64,order={order}]" for order in ("shuffled", "blocks", "stored", "buffer")
)


def operations_of(suite: str, variant: str, **request: object) -> set[str]:
    made = make_plan([SUITES[suite]], Request(**{"rows": 1_000, **request}))  # type: ignore[arg-type]
    (found,) = [chain.operations for chain in made.chains if chain.variant.startswith(variant)]
    return {name for name in found if name.startswith("batches")}


def test_a_storage_that_finds_images_has_all_orders() -> None:
    assert operations_of("training-images", "lmdb") == {SHUFFLED, BLOCKS, STORED, BUFFER}


def test_an_archive_is_read_whole_for_a_shuffle_and_once_alone() -> None:
    assert operations_of("training-images", "webdataset") == {SHUFFLED, STORED, BUFFER}


def test_formats_have_the_orders_of_tables() -> None:
    assert operations_of("training", "lance") == {SHUFFLED, BLOCKS, STORED}


def test_arrays_own_their_memory_in_every_storage() -> None:
    made = make_plan([SUITES["training-images"]], Request(rows=100))
    assert not any("views" in chain.variant for chain in made.chains)


def test_running_training_runs_it_for_images_too() -> None:
    suites = [suite.name for suite in planned(["training"], Request(rows=100)).suites]
    assert suites == ["training", "training-images"]
    assert [suite.name for suite in planned(["training-images"], Request(rows=100)).suites] == ["training-images"]


def test_a_request_only_about_tables_leaves_images_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [suite.name for suite in planned(["training"], Request(rows=100, target="arrow")).suites] == ["training"]
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))
    own = tmp_path / "mine.csv"
    own.write_text("number,text\n" + "1,x\n" * 5_000)
    made = planned(["training"], Request(data=own))
    assert {(chain.suite, chain.dataset) for chain in made.chains} == {("training", "table")}


@pytest.mark.parametrize(
    ("operation", "dataset", "fact"),
    [
        ("batches[rows=100,order=shuffled]", "vectors", "100 rows"),
        (BUFFER, "vectors", "use order=blocks"),
        ("batches[order=stored,workers=2]", "vectors", "use order=shuffled or order=blocks"),
        ("batches[order=buffer,workers=2]", "cifar-like", "use order=shuffled or order=blocks"),
    ],
)
def test_what_cannot_be_handed_out_is_refused(operation: str, dataset: str, fact: str) -> None:
    refusal = operation_of(operation).refusal(resolve(dataset, {}, rows=100).schema, 100)
    assert refusal is not None
    assert fact in refusal


@pytest.mark.parametrize(("operation", "dataset"), [(SHUFFLED, "vectors"), (BLOCKS, "eq"), (BUFFER, "cifar-like")])
def test_what_can_is_not(operation: str, dataset: str) -> None:
    assert operation_of(operation).refusal(resolve(dataset, {}, rows=100).schema, 100) is None
