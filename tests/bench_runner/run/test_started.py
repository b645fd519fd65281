"""The cost of processes that a format starts is the format's own (rule 20). Each process here has a known cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher
from bench_runner.worker.settle import Settler
from data_generator.cache import StoredDataset
from tests.bench_runner.conftest import WORKER_TIMEOUT_S, Spawning, chain_of
from tests.plugins.known_children import BURNT_S, HELD_BYTES, TAKEN_BYTES

pytestmark = pytest.mark.slow

MB = 10**6
BURNT_NS = int(BURNT_S * 1e9)


TRIES = 3
"""Number of tries. Under other load, the runner may take no reading while memory is held."""


@pytest.fixture
def started_by(request: pytest.FixtureRequest, launcher: Launcher, tmp_path: Path) -> Bench:
    """Return a bench for one kind of worker.

    Both kinds do the same job, so one is tested in all ways and the other in one way.
    """
    made = launcher if request.param == "forkserver" else Spawning(launcher, "save")
    return Bench(made, Settler(tmp_path), tmp_path, timeout_s=WORKER_TIMEOUT_S, machine="test")


def save(bench: Bench, dataset: StoredDataset, fault: str) -> Sample:
    chain = replace(chain_of(f"faulty[fault={fault}]"), operations=("save",))
    sample, _ = execute(bench, chain, dataset, rows=2_000, round_number=1, position=0, need_bytes=0)
    assert sample.failure is None, sample.failure
    return sample


@pytest.mark.parametrize(
    ("started_by", "fault", "peak_bytes"),
    [
        ("spawn", "grandchild", TAKEN_BYTES),
        ("forkserver", "child_takes", TAKEN_BYTES),
        ("forkserver", "child_takes_then_worker", TAKEN_BYTES),
        ("forkserver", "was_there_and_takes", TAKEN_BYTES),
        ("forkserver", "grandchild", TAKEN_BYTES),
        ("forkserver", "daemon", TAKEN_BYTES),
        ("forkserver", "fork", HELD_BYTES + TAKEN_BYTES),
        ("forkserver", "vforks", HELD_BYTES),
    ],
    indirect=["started_by"],
)
@pytest.mark.rule(20)
def test_memory_of_what_is_started_counts(
    started_by: Bench, dataset: StoredDataset, fault: str, peak_bytes: int
) -> None:
    for _ in range(TRIES):
        figures = save(started_by, dataset, fault).figures
        off = [figures[name] / peak_bytes - 1 for name in ("peak_private_bytes", "peak_rss_bytes")]
        # A reading may miss memory, so low figures are retried. Memory that is counted twice gives a high figure in
        # every try.
        if min(off) >= -0.05:
            break
    assert max(map(abs, off)) <= 0.05


@pytest.mark.rule(20)
def test_memory_of_partitions_counts_together_and_alone(faulty: None, bench: Bench, dataset: StoredDataset) -> None:
    """Each of two processes holds the same number of bytes while it reads its partition."""
    operation = "read-parallel[partitions=2,result=left]"
    chain = replace(chain_of("faulty[fault=read_holds]"), operations=("save", operation))
    for _ in range(TRIES):
        _, sample, *_ = execute(bench, chain, dataset, rows=2_000, round_number=1, position=0, need_bytes=0)
        assert sample.failure is None, sample.failure
        both, one = sample.figures["peak_private_bytes"], sample.figures["peak_process_bytes"]
        off = [both / (2 * TAKEN_BYTES) - 1, one / TAKEN_BYTES - 1]
        if min(off) >= -0.05:
            break
    assert max(map(abs, off)) <= 0.05


@pytest.mark.parametrize(
    ("started_by", "fault"),
    [
        ("spawn", "child_burns"),
        ("forkserver", "child_burns"),
        ("forkserver", "child_burns_and_stays"),
        ("forkserver", "grandchild_burns"),
        ("forkserver", "was_there_and_burns"),
        ("forkserver", "was_there_and_ends"),
    ],
    indirect=["started_by"],
)
@pytest.mark.rule(20)
def test_cpu_time_of_what_is_started_counts(started_by: Bench, dataset: StoredDataset, fault: str) -> None:
    """Starting a process takes CPU time too. If CPU time from before the call counted, the figure would be twice as
    high."""
    assert 0.98 * BURNT_NS <= save(started_by, dataset, fault).figures["cpu_ns"] <= BURNT_NS + 250 * 10**6
