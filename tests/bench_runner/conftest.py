"""Fixtures for tests of the runner: workers, a data set and the misbehaving format."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench_runner.operations.targets import Target
from bench_runner.plan.chain import Chain
from bench_runner.registries import REGISTRIES, engine_of
from bench_runner.results.records import Conditions, Sample
from bench_runner.run import page_cache
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher, Limits, Outcome
from bench_runner.worker.messages import AnyTask, Measured
from bench_runner.worker.settle import Rest, Settler
from data_generator.cache import StoredDataset, prepare
from data_generator.catalogue import resolve
from tests.bench_runner.run.invented import chain

HERE = Path(__file__).parent
PLUGINS = HERE.parent / "plugins"
WORKER_TIMEOUT_S, TEST_TIMEOUT_S = 300, 900
"""These limits are for tests that hang, not for slow tests.

A worker may wait up to 90 s for writes of other processes.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the time limit, because these tests wait several times until the machine is at rest."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def dataset(cache_folder: Path) -> StoredDataset:
    """20,000 rows of `eq` with missing values, so that the comparison distinguishes None from ''."""
    return prepare(
        resolve("synthetic", {"int": "1", "float": "2", "str": "1", "nulls": "0.1"}, rows=20_000), cache_folder
    )


@pytest.fixture(scope="module")
def faulty() -> Iterator[None]:
    """Register the format `faulty`, in this process and in workers."""
    with plugins_in(PLUGINS):
        yield


@contextmanager
def plugins_in(folder: Path) -> Iterator[None]:
    """Register the adapters whose distributions are in a folder, in this process and in workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        importlib.invalidate_caches()
        for registry in REGISTRIES.values():
            registry.__dict__.pop("entries", None)
        yield
    # Clear all caches, because lookups made meanwhile found the adapters of this folder.
    for registry in REGISTRIES.values():
        registry.__dict__.pop("entries", None)


@pytest.fixture(scope="session")
def one_forkserver() -> Iterator[Launcher]:
    """Share one forkserver, because starting one takes as long as starting ten workers."""
    made = Launcher(isolate="forkserver", threads=None, preload=["faulty"])
    yield made
    made.close()


@pytest.fixture(scope="module")
def launcher(faulty: None, one_forkserver: Launcher) -> Launcher:
    """Return a launcher that all modules share. Tests that break their launcher use another one."""
    return one_forkserver


class Spawning:
    """A launcher that spawns the workers of one operation and forks all other workers."""

    def __init__(self, launcher: Launcher, operation: str) -> None:
        self._launcher, self._operation = launcher, operation

    def run(self, task: AnyTask, limits: Limits) -> Outcome:
        return self._launcher.run(task, limits, spawn=getattr(task, "operation", "") == self._operation)


@pytest.fixture
def bench(launcher: Launcher, tmp_path: Path) -> Bench:
    folder = tmp_path / "work"
    folder.mkdir()
    return Bench(launcher, Settler(folder), folder, timeout_s=WORKER_TIMEOUT_S, machine="test")


def chain_of(
    spelled: str, target: str = "arrow", operations: tuple[str, ...] = ("save", "read"), **conditions: str
) -> Chain:
    """Return a chain of one variant on the data set 'test'."""
    engine, settings = engine_of(spelled)
    adapter = engine(settings)
    return chain(
        adapter.variant,
        "test",
        suite="test",
        library="test 1",
        suffix=adapter.suffix,
        target=Target(target, conditions.get("strings", "str"), "masked"),
        conditions=Conditions(target=target, **conditions),
        operations=operations,
    )


@pytest.fixture
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the machine as idle for every sample, whatever else runs."""
    answer = Outcome.answer

    def settled(outcome: Outcome, kind: type[Any]) -> Any:
        found = answer(outcome, kind)
        if isinstance(found, Measured):
            found.rest = Rest(found.rest.control, settled=True, settle_ns=found.rest.settle_ns)
        return found

    monkeypatch.setattr(Outcome, "answer", settled)
    monkeypatch.setattr(page_cache, "DEVICE_SLACK_BYTES", 10**8)


Executor = Callable[..., list[Sample]]


@pytest.fixture
def run_faulty(bench: Bench, dataset: StoredDataset) -> Executor:
    """Execute one chain of the format `faulty`: run_faulty('drop_last_row') returns its two samples."""

    def run(
        fault: str,
        *,
        on: Bench | None = None,
        settings: str = "",
        target: str = "arrow",
        operations: tuple[str, ...] = ("save", "read"),
        wanted: tuple[str, ...] | None = None,
        **conditions: str,
    ) -> list[Sample]:
        return execute(
            on or bench,
            chain_of(f"faulty[fault={fault}{settings}]", target, operations, **conditions),
            dataset,
            rows=dataset.rows,
            round_number=1,
            position=0,
            need_bytes=dataset.size_bytes,
            wanted=wanted,
        )

    return run
