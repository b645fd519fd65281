"""Workers start, are watched and end, whatever happens to them or to their forkserver."""

from __future__ import annotations

import itertools
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench_runner.machine import linux
from bench_runner.run import launcher as launching
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher, Limits, Outcome
from bench_runner.worker.messages import Probed, ProbeTask, encode
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_PREPARE
from bench_runner.worker.settle import Settler
from data_generator.cache import StoredDataset
from tests.bench_runner.conftest import WORKER_TIMEOUT_S, chain_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
MB = 10**6
LIMITS = Limits(timeout_s=WORKER_TIMEOUT_S, memory_bytes=10**10)


@pytest.fixture
def own_launcher(faulty: None) -> Iterator[Launcher]:
    """A separate launcher that a test may break."""
    made = Launcher(isolate="forkserver", threads=None, preload=["faulty"])
    yield made
    made.close()


def probe(launcher: Launcher, folder: Path, size_bytes: int = 10 * MB) -> Outcome:
    """A short job whose answer is known."""
    return launcher.run(probe_task(folder, size_bytes), LIMITS)


def probe_task(folder: Path, size_bytes: int) -> ProbeTask:
    return ProbeTask(how="numpy", size_bytes=size_bytes, scratch=folder, confine=folder, printed=folder / "printed")


def peak(outcome: Outcome) -> int:
    assert outcome.failure is None
    return outcome.answer(Probed).peak_rss_bytes


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def forkserver(launcher: Launcher) -> subprocess.Popen[bytes]:
    assert launcher._server is not None
    return launcher._server


def test_a_forkserver_that_was_killed_is_made_anew(own_launcher: Launcher, tmp_path: Path) -> None:
    assert peak(probe(own_launcher, tmp_path)) == pytest.approx(10 * MB, rel=0.1)
    first = forkserver(own_launcher)
    os.kill(first.pid, signal.SIGKILL)
    assert peak(probe(own_launcher, tmp_path, 20 * MB)) == pytest.approx(20 * MB, rel=0.1)
    assert forkserver(own_launcher).pid != first.pid
    assert own_launcher.preload_failures == {}


def test_a_forkserver_that_dies_under_its_job_costs_that_job_only(
    own_launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe(own_launcher, tmp_path)
    real = linux.MemoryReader.read

    def read(reader: linux.MemoryReader) -> linux.MemoryLevel | None:
        os.kill(forkserver(own_launcher).pid, signal.SIGKILL)
        return real(reader)

    with monkeypatch.context() as patch:
        patch.setattr(linux.MemoryReader, "read", read)
        # A smaller job could end before its memory is read.
        lost = probe(own_launcher, tmp_path, 100 * MB)
    assert lost.failure is not None
    assert lost.failure.kind == "crash"
    assert peak(probe(own_launcher, tmp_path)) == pytest.approx(10 * MB, rel=0.1)


@pytest.mark.parametrize("isolate", ["forkserver", "spawn"])
def test_an_interrupted_job_leaves_nothing_to_the_next(
    faulty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolate: str
) -> None:
    """Ctrl-C interrupts a call while the worker runs. The worker ends with the call, and the next job gets its own
    answers."""
    launcher = Launcher(isolate=isolate, threads=None, preload=["faulty"])
    workers: list[psutil.Process] = []

    def interrupted(reader: linux.MemoryReader) -> None:
        workers.extend(process for process in children() if process not in before)
        for worker in workers:
            # The worker is stopped, so that it cannot end by itself.
            worker.suspend()
        raise KeyboardInterrupt

    try:
        launcher.load()
        before = children()
        with monkeypatch.context() as patch:
            patch.setattr(linux.MemoryReader, "read", interrupted)
            with pytest.raises(KeyboardInterrupt):
                probe(launcher, tmp_path, 100 * MB)
        assert len(workers) == 1
        assert has_ended(workers[0])
        assert peak(probe(launcher, tmp_path, 20 * MB)) == pytest.approx(20 * MB, rel=0.1)
    finally:
        launcher.close()


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process ends within a minute, even if its parent has not waited for it yet."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("isolate", ["forkserver", "spawn"])
def test_no_zombie_and_no_descriptor_stays(faulty: None, tmp_path: Path, isolate: str) -> None:
    launcher = Launcher(isolate=isolate, threads=None, preload=["faulty"])
    before = children()
    try:
        launcher.load()
        open_files = len(os.listdir("/proc/self/fd"))
        probe(launcher, tmp_path)
        assert len(os.listdir("/proc/self/fd")) == open_files
        ours = [process for process in children() if process not in before]
        assert len(ours) == (1 if isolate == "forkserver" else 0)
        assert all(process.status() != psutil.STATUS_ZOMBIE for process in ours)
    finally:
        launcher.close()
    assert [process for process in children() if process not in before] == []


@pytest.mark.parametrize("hangs", [PHASE_PREPARE, PHASE_CLOCK, PHASE_AFTER])
def test_each_phase_has_the_limit_for_itself(monkeypatch: pytest.MonkeyPatch, hangs: int) -> None:
    """The clock advances 0.6 s at each reading, so the earlier phases together take longer than the limit."""
    phase, looks, ended_in = mmap.mmap(-1, mmap.PAGESIZE), itertools.count(1), []
    phases = iter((PHASE_PREPARE, PHASE_CLOCK, PHASE_AFTER)[: hangs + 1])
    phase[0] = next(phases)
    kill = launching._kill

    def now_ns() -> int:
        look = next(looks)
        if look % 2 == 0:
            # The first reading in a phase gives its start. The second reading is still within the limit.
            phase[0] = next(phases, hangs)
        return look * 6 * 10**8

    def killed(handle: int) -> None:
        ended_in.append((phase[0], next(phases, None)))
        kill(handle)

    monkeypatch.setattr(launching, "now_ns", now_ns)
    monkeypatch.setattr(launching, "_kill", killed)
    answers, theirs = os.pipe2(os.O_NONBLOCK)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as worker:
        assert launching._watch(worker, answers, phase, Limits(1.0, 10**10), Outcome(), None) == "timeout"
    assert ended_in[0] == (hangs, None)
    for descriptor in (answers, theirs):
        os.close(descriptor)


def bench_with(launcher: Launcher, folder: Path) -> Bench:
    return Bench(launcher, Settler(folder), folder, timeout_s=WORKER_TIMEOUT_S, machine="test")


def test_a_library_that_ends_the_process_as_it_is_loaded_fails_alone(
    faulty: None, tmp_path: Path, dataset: StoredDataset
) -> None:
    aborting = "faulty[fault=aborts_on_load]"
    launcher = Launcher(isolate="forkserver", threads=None, preload=["faulty", aborting])
    bench = bench_with(launcher, tmp_path)
    outcomes: dict[str, Any] = {}
    try:
        for position, spelled in enumerate((aborting, "faulty")):
            save, read = execute(
                bench, chain_of(spelled), dataset, rows=2_000, round_number=1, position=2 * position, need_bytes=0
            )
            outcomes[spelled] = save.failure, read.failure
    finally:
        launcher.close()
    assert outcomes["faulty"] == (None, None)
    failure, skipped = outcomes[aborting]
    assert failure.kind == "crash"
    assert "SIGABRT" in failure.reason
    assert skipped.kind == "skipped"
    assert "each worker loads its own" in launcher.preload_failures["all"]


POISON = "raise SystemExit('code of the current folder')\n"


def test_workers_take_no_code_from_the_current_folder(tmp_path: Path) -> None:
    poisoned, scratch = tmp_path / "poisoned", tmp_path / "scratch"
    scratch.mkdir()
    for package in ("bench_runner", "formats", "adapters"):
        (poisoned / package).mkdir(parents=True)
        (poisoned / package / "__init__.py").write_text(POISON)
    for module in ("csv", "json", "pyarrow", "numpy"):
        (poisoned / f"{module}.py").write_text(POISON)
    task = encode(probe_task(scratch, MB))
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import os\n"
        "from bench_runner.run.launcher import Launcher, Limits\n"
        "from bench_runner.worker.messages import AnyTask, decode\n"
        f"os.chdir({str(poisoned)!r})\n"
        "for isolate in ('forkserver', 'spawn'):\n"
        "    launcher = Launcher(isolate=isolate, threads=None, preload=['csv', 'parquet'])\n"
        f"    outcome = launcher.run(decode({task!r}, AnyTask), Limits({WORKER_TIMEOUT_S}, 10**10))\n"
        "    launcher.close()\n"
        "    print(isolate, outcome.failure, launcher.preload_failures)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.stdout == "forkserver None {}\nspawn None {}\n", done.stdout + done.stderr
