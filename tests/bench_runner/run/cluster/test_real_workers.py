"""A run over workers of dask that are processes of this machine. They call themselves different hosts, so each measures
its part with the real code, and all at the same time."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench_runner.results.records import Sample, read_run
from bench_runner.run.cluster import dispatch
from bench_runner.run.cluster.agent import HOST_VARIABLE
from bench_runner.run.cluster.division import stored
from format_bench.api.report import stored_runs
from format_bench.api.run import RunOutcome, run
from format_bench.errors import Interrupted
from format_bench.progress import Silent

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow
ASKED: dict[str, Any] = {
    "formats": ("feather", "pickle"),
    "datasets": ("eq", "core"),
    "rows": 500,
    "rounds": 2,
    "fidelity": False,
}


@contextmanager
def worker(address: str, name: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    command += ["--local-directory", str(tmp_path / f"dask-{name}")]
    with subprocess.Popen(command, env={**os.environ, HOST_VARIABLE: name}, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def results_are_fetched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a host could finish before its first results were seen."""
    monkeypatch.setattr(dispatch, "LOOK_S", 0.1)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """Return the address of a scheduler with a worker on each of two 'hosts', and the processes of the workers."""
    with ExitStack() as stack:
        scheduler = distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
        address = stack.enter_context(scheduler).scheduler_address
        workers = {name: stack.enter_context(worker(address, name, tmp_path)) for name in ("lab-1", "lab-2")}
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, workers


def executions(samples: Iterable[Sample]) -> list[tuple[object, ...]]:
    return [(each.dataset, each.variant, each.operation, each.rows, each.round, each.conditions) for each in samples]


def check_complete(outcome: RunOutcome) -> None:
    """Both data sets have both rounds of every variant on a host that has finished."""
    finished = {label for label, part in stored(outcome.folder).parts.items() if part.finished}
    samples = [each for one in outcome.runs if one.folder.name in finished for each in one.samples]
    found = {(each.dataset, each.variant.split("[")[0], each.round) for each in samples if each.round}
    names = itertools.product(("eq", "core"), ("feather", "pickle", "raw-io"), (1, 2))
    assert found == set(names)


def test_a_host_that_dies_is_replaced_and_nothing_is_lost(
    cluster: tuple[str, dict[str, subprocess.Popen[bytes]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LOST_S", 1.0)
    address, workers = cluster

    class KillsOne(Silent):
        def measured(self, samples: Any) -> None:
            if any(sample.machine == "lab-2" for sample in samples):
                workers["lab-2"].kill()

    outcome = run("tabular", **ASKED, cluster=address, out=tmp_path / "run", watcher=KillsOne())
    parts = stored(tmp_path / "run").parts
    assert (parts["lab-1"].finished, parts["lab-2"].finished) == (True, False)
    assert not outcome.incomplete
    first = next(one for one in outcome.runs if one.info.machine.name == "lab-1")
    assert {sample.dataset for sample in first.samples} == {"eq", "core"}
    for one in outcome.runs:
        assert len(set(executions(one.samples))) == len(one.samples)
    check_complete(outcome)


def test_hosts_share_the_data_and_a_stopped_run_is_resumed(cluster: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    address, _ = cluster
    folder = tmp_path / "run"

    class Stops(Silent):
        def measured(self, samples: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped:
        run("tabular", **ASKED, cluster=address, out=folder, watcher=Stops())
    assert stopped.value.folder == folder
    before = {place.name: read_run(place).samples for place in folder.iterdir() if (place / "samples.jsonl").exists()}
    assert any(before.values())
    outcome = run("tabular", **ASKED, cluster=address, out=folder, resume=True)
    assert not outcome.incomplete
    for one in outcome.runs:
        earlier = executions(before.get(one.folder.name, []))
        assert executions(one.samples)[: len(earlier)] == earlier
    check_complete(outcome)
    first, second = ({sample.dataset for sample in one.samples} for one in outcome.runs)
    assert (first | second, first & second) == ({"eq", "core"}, set())
    assert [{sample.machine for sample in one.samples} for one in outcome.runs] == [{"lab-1"}, {"lab-2"}]
    assert [each.info.id for each in stored_runs(folder)] == [each.info.id for each in outcome.runs]
