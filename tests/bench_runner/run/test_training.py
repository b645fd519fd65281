"""Mini-batches in a chain: a correct loader counts, and wrong loaders are found (rule 11)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from bench_runner.operations import READ_ALL, Batches, Epoch
from bench_runner.operations.streams import orders
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher
from bench_runner.suites import SUITES
from bench_runner.worker.sampling import epochs
from data_generator.cache import StoredDataset, prepare
from data_generator.catalogue import resolve
from tests.bench_runner.conftest import PLUGINS, Executor, Spawning, chain_of

pytestmark = pytest.mark.usefixtures("at_rest")

SHUFFLED = "batches[rows=512,order=shuffled]"
STORED = "batches[rows=512,order=stored]"
BLOCKS = "batches[rows=512,order=blocks]"
TWO_PROCESSES = "batches[rows=512,order=blocks,workers=2]"
SPELLED = "batches[rows=64,order=shuffled,workers=2]"
ROWS, BATCHES = 20_000, 40


def only(run_faulty: Executor, fault: str, operation: str) -> Sample:
    samples = run_faulty(fault, operations=("save", operation), wanted=(operation,))
    return samples[1]


def test_the_epoch_that_is_shuffled_less_is_reported() -> None:
    batches = [pa.table({"number": np.arange(100)})] * 10
    in_order, shuffled = np.arange(1_000), orders.permuted(np.random.default_rng(1), 1_000)
    parts = dict.fromkeys(("engine_ns", "convert_ns", "touch_ns", "cpu_ns"), 1)
    for asked in ((in_order, shuffled), (shuffled, in_order)):
        handed = [Epoch(0, list(range(1, 11)), batches, 20) for _ in asked]
        found = epochs.figures(Batches(rows=100), asked, handed, parts, 1_000)
        assert found["locality_permille"] > 4_000
        assert found["parts_permille"] > 10_000


HANDED_OUT = {
    SHUFFLED: ("takes", (900, 1_150), (900, 1_150)),
    BLOCKS: ("takes", (1_100, 1_500), (6_000, 10_000)),
    # Each batch contains only neighbouring rows, from one part of the table.
    STORED: ("batches", (15_000, 25_000), (300_000, 512_000)),
}
"""Variant -> the expected ranges of its locality and its parts, in thousandths."""


@pytest.mark.parametrize("operation", HANDED_OUT)
def test_all_rows_are_handed_out_twice(run_faulty: Executor, operation: str) -> None:
    fault, locality, parts = HANDED_OUT[operation]
    sample = only(run_faulty, fault, operation)
    assert sample.failure is None
    assert sample.fidelity == "exact"
    assert sample.fallback == ""
    figures = sample.figures
    assert figures["epoch_rows"] == ROWS
    assert figures["repetitions"] == 2 * BATCHES
    assert figures["calls_ns"] == figures["epoch_1_ns"] + figures["epoch_2_ns"]
    assert figures["wall_ns"] == figures["calls_ns"] * 512 // (2 * ROWS)
    assert 0 < figures["first_batch_ns"] < figures["epoch_1_ns"]
    assert 0 < figures["gap_p99_ns"] < figures["calls_ns"]
    assert figures["engine_ns"] + figures["convert_ns"] + figures["touch_ns"] <= figures["wall_ns"]
    # Batches are kept until they are verified, so a memory figure would include them.
    assert "peak_private_bytes" not in figures
    # The quality of the shuffle is reported with the speed.
    assert locality[0] < figures["locality_permille"] < locality[1]
    assert parts[0] < figures["parts_permille"] <= parts[1]


@pytest.mark.parametrize("operation", [SHUFFLED, STORED])
def test_without_a_call_for_it_everything_is_read_once(run_faulty: Executor, operation: str) -> None:
    sample = only(run_faulty, "none", operation)
    assert sample.failure is None
    assert sample.fallback == READ_ALL
    assert not sample.cached


FAULTS = {
    "takes_in_stored_order": (SHUFFLED, "row "),
    "take_sorted": (SHUFFLED, "row "),
    "take_drops_one": (BLOCKS, "epoch 1, batch 2 has 511 rows, expected 512"),
    "take_of_the_call_before": (SHUFFLED, "row "),
    "batches_drop_the_last": (STORED, "epoch 1 returned 19,968 rows, expected 20,000"),
    "batches_repeat_a_row": (STORED, "row 700"),
    "batches_go_on": (STORED, "epoch 1, batch 40 has 33 rows, expected 32"),
    "batches_too_large": (STORED, "epoch 1, batch 1 has 1,024 rows, expected 512"),
    "batches_use_memory_again": (STORED, "row 0"),
    "batches_change_a_value": (STORED, "row 5"),
    "batches_of_nothing": (STORED, "epoch 1 returned no batch"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.rule(19)
def test_a_loader_that_hands_out_something_else_is_found(run_faulty: Executor, fault: str) -> None:
    operation, words = FAULTS[fault]
    sample = only(run_faulty, fault, operation)
    assert sample.failure is not None
    assert sample.failure.kind == "mismatch"
    assert words in sample.failure.reason
    assert not sample.figures


def test_a_second_epoch_from_the_librarys_own_memory_is_marked(run_faulty: Executor) -> None:
    sample = only(run_faulty, "take_keeps_what_it_has_read", SHUFFLED)
    assert sample.failure is None
    assert sample.cached


@pytest.mark.rule(19)
@pytest.mark.parametrize(
    ("asked_bytes", "copy_bytes", "cached"),
    [
        ((8_000, 0), 8_000, True),
        ((8_000, 8_000), 8_000, False),
        # A compressed copy is read completely, but it has far fewer bytes than the rows.
        ((1_000, 0), 1_000, True),
        ((1_000, 900), 1_000, False),
        # Of a memory-mapped file, only the footer is requested.
        ((100, 0), 1_000, False),
        ((100, 0), 8_000, False),
    ],
)
def test_a_second_epoch_that_reads_nothing_is_cached_also_if_the_copy_is_compressed(
    asked_bytes: tuple[int, int], copy_bytes: int, cached: bool
) -> None:
    epoch = Epoch(0, [1], [pa.table({"number": np.arange(1_000)})], 2)
    assert epochs.is_cached(asked_bytes, [epoch, epoch], copy_bytes) is cached


# --- images -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> StoredDataset:
    return prepare(resolve("cifar-like", {}, rows=600), tmp_path_factory.mktemp("images"))


RunImages = Callable[..., Sample]


@pytest.fixture
def run_images(bench: Bench, images: StoredDataset) -> RunImages:
    def run(spelled: str, operation: str) -> Sample:
        chain = chain_of(spelled, "images", ("save", operation))
        samples = execute(
            bench,
            chain,
            images,
            rows=images.rows,
            round_number=1,
            position=0,
            need_bytes=images.size_bytes,
            wanted=(operation,),
        )
        return samples[1]

    return run


@pytest.mark.parametrize(
    ("storage", "order"),
    [("image-hdf5", "shuffled"), ("image-hdf5", "blocks"), ("webdataset", "shuffled"), ("webdataset", "buffer")],
)
def test_images_are_handed_out_twice(run_images: RunImages, storage: str, order: str) -> None:
    sample = run_images(storage, f"batches[rows=64,order={order}]")
    assert sample.failure is None
    assert sample.fidelity == "exact"
    whole = storage == "webdataset" and order == "shuffled"
    assert sample.fallback == (READ_ALL if whole else "")
    assert sample.figures["epoch_rows"] == 600
    assert sample.figures["repetitions"] == 20


def test_a_lossy_storage_keeps_to_its_bound(run_images: RunImages) -> None:
    assert run_images("jpeg", "batches[rows=64,order=shuffled]").fidelity == "declared loss"


# --- two processes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def with_torch(bench: Bench, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Workers that import a substitute for torch."""
    launcher.load()
    places = [str(PLUGINS / "stand_in"), os.environ["PYTHONPATH"]]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))
    return replace(bench, launcher=Spawning(launcher, TWO_PROCESSES))


@pytest.mark.parametrize("fault", ["takes", "take_drops_one"])
def test_two_processes_hand_out_the_same(run_faulty: Executor, with_torch: Bench, fault: str) -> None:
    samples = run_faulty(fault, on=with_torch, operations=("save", TWO_PROCESSES), wanted=(TWO_PROCESSES,))
    failure = samples[1].failure
    if fault == "takes":
        assert failure is None
        assert samples[1].fidelity == "exact"
        # On a busy machine workers may start so slowly that the first window ends the epoch.
        assert samples[1].figures["epoch_rows"] in range(1_024, ROWS + 1)
    else:
        assert failure is not None
        assert "epoch 1, batch 2 has 511 rows" in failure.reason


def test_without_torch_two_processes_are_not_installed() -> None:
    if importlib.util.find_spec("torch"):
        pytest.skip("torch is installed")
    request = Request(rows=1000, formats=("feather",), operations=("batches[workers=2]",))
    made = make_plan([SUITES["training"]], request)
    found = {each.failure.reason for each in made.excluded if each.chain.operations == (SPELLED,)}
    assert found == {"needs torch: pip install torch"}
    assert not any(SPELLED in chain.operations for chain in made.chains)
