"""Errors in a chain are found and reported, and leave no figures, files or processes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from bench_runner.machine import linux
from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher, Limits, Outcome
from bench_runner.thread_variables import ONE_THREAD
from bench_runner.worker.messages import Measured, MeasureTask
from bench_runner.worker.settle import Control, Readiness, Settler
from data_generator.cache import StoredDataset, prepare
from data_generator.catalogue import resolve
from tests.bench_runner.conftest import Executor, Spawning, chain_of
from tests.plugins.faulty_formats import READ_SLEEP_S, SAVE_SLEEP_S, STORED_SLEEP_S

MS = 10**6
NOISE_NS = 350 * MS
"""A busy machine may delay a call by this time. Sleeps in untimed phases are longer, so that the test can tell them
apart."""
TRIES = 5
"""Number of tries, because other load on the machine may delay an execution even more."""
SAVE_SLEEP_NS, READ_SLEEP_NS, STORED_SLEEP_NS = (int(s * 1e9) for s in (SAVE_SLEEP_S, READ_SLEEP_S, STORED_SLEEP_S))


@pytest.mark.rule(4, 14)
def test_a_good_chain_gives_two_verified_samples(run_faulty: Executor, dataset: StoredDataset, bench: Bench) -> None:
    save, read = run_faulty("none")
    assert (save.operation, read.operation) == ("save", "read")
    assert save.failure is None
    assert read.failure is None
    assert read.fidelity == "exact"
    assert save.codec == "none"
    assert save.dataset_digest == read.dataset_digest == dataset.digest
    assert save.figures["size_bytes"] >= dataset.size_bytes * 0.9
    assert 0.9 <= save.figures["allocated_bytes"] / save.figures["size_bytes"] <= 1.5
    assert read.figures["resident_before_bytes"] >= 0.99 * save.figures["size_bytes"]
    assert list(bench.folder.iterdir()) == []


@pytest.mark.rule(2, 6)
def test_the_clock_holds_the_call_and_nothing_else(run_faulty: Executor) -> None:
    """Sleeps of known length show that loading, priming, reading back and verifying are not timed (rules 2 and 6)."""
    for _ in range(TRIES):
        save, read = run_faulty("spy")
        if _undisturbed(save, read):
            break
    assert SAVE_SLEEP_NS <= save.figures["wall_ns"] < SAVE_SLEEP_NS + NOISE_NS
    assert READ_SLEEP_NS <= read.figures["wall_ns"] < READ_SLEEP_NS + NOISE_NS
    assert save.figures["engine_ns"] >= SAVE_SLEEP_NS
    assert save.figures["first_call_ns"] >= SAVE_SLEEP_NS
    assert read.figures["first_call_ns"] >= READ_SLEEP_NS
    assert save.figures["cpu_ns"] < SAVE_SLEEP_NS / 2
    assert save.figures["sync_ns"] < STORED_SLEEP_NS
    assert save.figures["first_call_ns"] < SAVE_SLEEP_NS + NOISE_NS
    assert save.figures["prepare_ns"] >= SAVE_SLEEP_NS


def _undisturbed(save: Sample, read: Sample) -> bool:
    """Return whether the machine caused no delay. Errors of the harness, unlike such delays, occur in every try."""
    walls_ns = (save.figures["wall_ns"] - SAVE_SLEEP_NS, read.figures["wall_ns"] - READ_SLEEP_NS)
    first_ns = save.figures["first_call_ns"] - SAVE_SLEEP_NS
    return max(*walls_ns, first_ns) < NOISE_NS and save.figures["sync_ns"] < STORED_SLEEP_NS


class Spying:
    """A launcher that records the tasks and outcomes, and otherwise works normally.

    `after` may change an outcome when a job has ended, to simulate an effect of the machine.
    """

    def __init__(self, bench: Bench, after: Callable[[MeasureTask, Outcome], None] | None = None) -> None:
        self._bench, self._after = bench, after
        self.tasks: list[MeasureTask] = []
        self.outcomes: list[Outcome] = []

    def bench(self) -> Bench:
        return replace(self._bench, launcher=self)

    def run(self, task: MeasureTask, limits: Limits) -> Outcome:
        self.tasks.append(task)
        outcome = self._bench.launcher.run(task, limits)
        self.outcomes.append(outcome)
        if self._after is not None:
            self._after(task, outcome)
        return outcome

    def notes(self) -> list[dict[str, Any]]:
        """Return the conditions that the calls of `faulty[fault=notes]` printed."""
        return [json.loads(line) for outcome in self.outcomes for line in outcome.printed.splitlines()]


def test_workers_settle_as_the_run_has_found_and_it_learns_from_them(run_faulty: Executor, bench: Bench) -> None:
    """If touching memory made a slow control fast, the run touches memory before every later sample."""
    bench.settler.readiness = Readiness(False, "nothing was taken back")

    def cured(task: MeasureTask, outcome: Outcome) -> None:
        if task.operation == "save":
            measured = outcome.answer(Measured)
            measured.rest = replace(measured.rest, tries=2)

    spying = Spying(bench, after=cured)
    run_faulty("none", on=spying.bench())
    assert [task.readiness.touches for task in spying.tasks] == [False, True]


def test_a_collection_inside_the_clock_is_not_counted_and_comes_before_the_next(
    run_faulty: Executor, bench: Bench
) -> None:
    def collected(task: MeasureTask, outcome: Outcome) -> None:
        measured = outcome.answer(Measured)
        measured.collected = task.operation == "read" and not task.thorough
        # Other processes on the machine would be a second reason, which would be reported instead.
        measured.rest = replace(measured.rest, why_not="")

    spying = Spying(bench, after=collected)
    save, read = run_faulty("none", on=spying.bench())
    assert (save.unsettled, read.unsettled) == (False, True)
    assert any("a full garbage collection ran" in warning for warning in read.warnings)
    save, read = run_faulty("none", on=spying.bench())
    assert (save.unsettled, read.unsettled) == (False, False)
    assert [task.thorough for task in spying.tasks] == [False, False, False, True]


@pytest.mark.rule(1)
def test_every_operation_starts_on_a_machine_at_rest(run_faulty: Executor, bench: Bench) -> None:
    """The machine is compared with the fastest control of the run, which controls of workers can only lower
    (rule 1)."""
    spying = Spying(bench)
    save, read = run_faulty("none", on=spying.bench())
    assert [task.need_bytes > 0 for task in spying.tasks] == [True, True]
    assert [task.best_control is None for task in spying.tasks] == [True, False]
    for sample in (save, read):
        assert sample.figures["settle_ns"] > sample.figures["control_write_ns"] + sample.figures["control_allocate_ns"]
    assert bench.settler.best is not None
    assert bench.settler.best.write_ns == min(sample.figures["control_write_ns"] for sample in (save, read))


@pytest.mark.rule(1)
def test_a_slow_control_leaves_the_sample_uncounted(run_faulty: Executor, bench: Bench) -> None:
    bench.settler.learn(Control(1, 1))
    save, _ = run_faulty("none")
    assert save.unsettled
    assert any("not counted, the machine was not at rest" in warning for warning in save.warnings)


@pytest.mark.rule(2)
def test_an_operation_is_primed_on_few_rows_elsewhere(
    run_faulty: Executor, bench: Bench, dataset: StoredDataset
) -> None:
    """Priming makes the same call before, on 1,000 rows and on another file (rule 2)."""
    spying = Spying(bench)
    run_faulty("notes", on=spying.bench())
    primed, saved, read_first, read = spying.notes()
    assert (primed["rows"], saved["rows"]) == (1_000, dataset.rows)
    assert [note["call"] for note in (read_first, read)] == ["read", "read"]
    assert primed["location"] == read_first["location"] != saved["location"] == read["location"]


@pytest.mark.rule(4)
def test_every_save_has_a_path_that_was_never_used(bench: Bench, dataset: StoredDataset, faulty: None) -> None:
    """Overwriting a file takes several times as long as writing a new one (rule 4)."""
    spying = Spying(bench)
    chain = replace(chain_of("faulty"), operations=("save",))
    for position in (1, 2):
        execute(spying.bench(), chain, dataset, rows=500, round_number=1, position=position, need_bytes=0)
    assert len({task.location for task in spying.tasks}) == 2
    assert len({task.location.parent for task in spying.tasks}) == 2


@pytest.mark.rule(9)
def test_the_call_runs_as_users_run_it(run_faulty: Executor, bench: Bench) -> None:
    """Garbage collection stays on, and no number of threads is set (rule 9). The kernel kills the worker first (rule
    5)."""
    spying = Spying(bench)
    run_faulty("notes", on=spying.bench())
    for note in spying.notes():
        assert note["collector"] is True
        assert note["oom_score_adj"] == 1000
        assert note["cores"] == len(os.sched_getaffinity(0))
        assert {name: os.environ.get(name) for name in ONE_THREAD} == {
            name: note["environment"].get(name) for name in ONE_THREAD
        }
        assert note["arrow_cpu"] == pa.cpu_count()
        assert note["arrow_io"] == pa.io_thread_count()


@pytest.fixture(scope="module")
def single(faulty: None) -> Iterator[Launcher]:
    """Workers of one thread."""
    made = Launcher(isolate="forkserver", threads=1, preload=["faulty"])
    yield made
    made.close()


@pytest.mark.rule(9)
def test_one_thread_is_set_for_every_library(run_faulty: Executor, bench: Bench, single: Launcher) -> None:
    """Every library's setting is set, and the affinity is one core (rule 9). A spawned worker saves, a forked one
    reads."""
    spying = Spying(replace(bench, launcher=Spawning(single, "save")))
    cores = os.sched_getaffinity(0)
    run_faulty("notes", on=spying.bench(), threads="1")
    assert os.sched_getaffinity(0) == cores, "the run itself keeps its cores"
    notes = spying.notes()
    assert len(notes) == 4
    for note in notes:
        assert (note["cores"], note["arrow_cpu"], note["arrow_io"]) == (1, 1, 1)
        assert {name: note["environment"].get(name) for name in ONE_THREAD} == dict.fromkeys(ONE_THREAD, "1")
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLOSC_NTHREADS", "POLARS_MAX_THREADS"} <= set(ONE_THREAD)


MISMATCHES = {
    "drop_last_row": "rows",
    "swap_rows": "row 3",
    "int_to_float": "int64",
    "none_to_empty": "stored None",
    "fault_in_lossy": "row 5",
}


@pytest.mark.parametrize("fault", MISMATCHES)
@pytest.mark.parametrize("target", ["arrow", "pandas"])
@pytest.mark.rule(11)
def test_a_wrong_result_shows_no_figure(run_faulty: Executor, fault: str, target: str) -> None:
    """Planted faults are found in the result of the timed call, and the save does not count either (rule 11)."""
    save, read = run_faulty(fault, target=target)
    assert read.failure is not None
    assert read.failure.kind == "mismatch"
    if target == "arrow":
        assert MISMATCHES[fault] in read.failure.reason
    assert read.figures == {}
    assert save.figures == {}
    assert save.failure is not None


@pytest.mark.parametrize("fault", ["mapped", "mapped_deleted"])
@pytest.mark.rule(7)
def test_a_result_in_a_mapping_is_refused(run_faulty: Executor, fault: str) -> None:
    """A result in a file mapping belongs to another variant (rule 7)."""
    _, read = run_faulty(fault)
    assert read.failure is not None
    assert read.failure.kind == "mismatch"
    assert "mapping" in read.failure.reason


@pytest.mark.rule(11)
def test_a_result_that_changes_with_its_files_is_refused(run_faulty: Executor) -> None:
    """Results are compared again after the files are removed (rule 11)."""
    save, read = run_faulty("changes_after_removal")
    assert read.failure is not None
    assert read.failure.kind == "mismatch"
    assert read.figures == save.figures == {}


@pytest.mark.parametrize("fault", ["stray_beside", "stray_in_working_directory", "stray_in_temporary"])
def test_a_write_outside_its_place_is_found(run_faulty: Executor, bench: Bench, fault: str) -> None:
    save, read = run_faulty(fault)
    assert save.failure is not None
    assert save.failure.kind == "mismatch"
    assert "outside its path" in save.failure.reason
    assert read.failure is not None
    assert read.failure.kind == "skipped"
    assert list(bench.folder.iterdir()) == []


@pytest.mark.rule(5)
def test_a_write_anywhere_else_is_refused_by_the_kernel(run_faulty: Executor, bench: Bench) -> None:
    elsewhere = bench.folder / "elsewhere.txt"
    if not _landlock():
        pytest.skip("this kernel has no Landlock")
    save, _ = run_faulty("stray_elsewhere")
    assert save.failure is not None
    assert "Permission denied" in save.failure.reason
    assert not elsewhere.exists()


def _landlock() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if linux.confine_writes([]) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_a_library_prints_stays_out_of_our_output(run_faulty: Executor, capfd: pytest.CaptureFixture[str]) -> None:
    save, read = run_faulty("prints")
    assert capfd.readouterr() == ("", "")
    assert save.failure is None
    assert read.failure is None
    assert any("a careless print" in warning for warning in save.warnings)


ENDINGS = {
    "exits": ("crash", "without an answer (exit code 0)"),
    "exits_by_python": ("error", "SystemExit"),
    "killed": ("crash", "SIGKILL"),
    "raises": ("error", "ValueError: a message of two lines"),
    "does_not_take_it": ("refused", "the call does not take this data (TypeError: objects of this kind cannot"),
    "does_not_hold_it": ("refused", "the call does not take this data (ValueError: Out of range float values"),
    "refuses": ("refused", "no tables on Saturdays"),
    "nothing_written": ("", ""),
    "wrong_codec": ("mismatch", "codec"),
}


@pytest.mark.parametrize("fault", ENDINGS)
@pytest.mark.rule(10)
def test_every_ending_has_its_reason(run_faulty: Executor, bench: Bench, fault: str) -> None:
    kind, words = ENDINGS[fault]
    save, read = run_faulty(fault)
    assert save.failure is not None
    if kind:
        assert save.failure.kind == kind
    assert words in save.failure.reason
    assert "\n" not in save.failure.reason
    assert read.failure is not None
    assert read.figures == save.figures == {}
    assert list(bench.folder.iterdir()) == []
    good, _ = run_faulty("none")
    assert good.failure is None, "the next chain must not suffer"


def test_the_same_error_in_a_read_is_a_failure(run_faulty: Executor) -> None:
    """A refusal does not fail the run, so only a save may refuse."""
    save, read = run_faulty("does_not_read_it")
    assert read.failure is not None
    assert read.failure.kind == "error"
    assert read.failure.is_failure
    assert save.failure is not None
    assert save.failure.is_failure


class Hurrying:
    """A launcher that limits one operation to a second, and does not limit other operations."""

    def __init__(self, bench: Bench, hurried: str) -> None:
        self._bench, self._hurried = bench, hurried

    def run(self, task: MeasureTask, limits: Limits) -> Outcome:
        hurried = task.operation == self._hurried
        return self._bench.launcher.run(task, replace(limits, timeout_s=1.0) if hurried else limits)


@pytest.mark.parametrize("fault", ["hangs", "hangs_on_read"])
@pytest.mark.rule(5)
def test_a_worker_that_hangs_is_ended(run_faulty: Executor, bench: Bench, fault: str) -> None:
    hanging = "save" if fault == "hangs" else "read"
    samples = run_faulty(fault, on=replace(bench, launcher=Hurrying(bench, hanging)))
    (failed,) = [sample for sample in samples if sample.operation == hanging]
    assert failed.failure is not None
    assert failed.failure.kind == "timeout"
    assert "--timeout" in failed.failure.reason
    assert all(sample.figures == {} for sample in samples)


@pytest.mark.rule(5)
def test_a_worker_that_allocates_without_end_is_ended(
    run_faulty: Executor, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel kills the worker before other processes suffer (rule 5)."""
    monkeypatch.setattr(linux, "available_bytes", lambda: 600 * 10**6)
    save, _ = run_faulty("allocates")
    assert save.failure is not None
    assert save.failure.kind == "memory"
    assert "0.5 GB" in save.failure.reason


@pytest.mark.rule(5)
def test_no_process_outlives_its_chain(run_faulty: Executor, bench: Bench) -> None:
    bench.launcher.load()
    before = _forkservers()
    save, _ = run_faulty("starts_a_child")
    # A killed process may take a moment to end. Other tests on this machine may start and end forkservers meanwhile.
    deadline = time.monotonic() + 60
    while (left := [process for process in psutil.process_iter() if _is_in(process, bench.folder)]) != []:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert _forkservers() == before
    assert save.figures


def _forkservers() -> set[int]:
    """Return the forkservers of this process."""
    children = psutil.Process().children()
    return {process.pid for process in children if "bench_runner.run.forkserver" in _command(process)}


def _is_in(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process is a worker that used this folder, or a child of one.

    The folder may already be removed.
    """
    try:
        return str(folder) in process.cwd()
    except psutil.Error:
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A real file system of 100 MB, if the test may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", folder], capture_output=True)
    if done.returncode != 0:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.rule(5)
def test_a_full_disk_is_one_failed_sample(run_faulty: Executor, bench: Bench, small_disk: Path) -> None:
    on = replace(bench, folder=small_disk, settler=Settler(small_disk))
    save, read = run_faulty("fills_disk", on=on)
    assert save.failure is not None
    assert save.failure.kind == "disk"
    assert "No space left" in save.failure.reason
    assert read.failure is not None
    assert list(small_disk.iterdir()) == []
    good, _ = run_faulty("none", on=on)
    assert good.failure is None


@pytest.mark.rule(9)
def test_one_thread_is_held_to_one_core(run_faulty: Executor, bench: Bench, single: Launcher) -> None:
    """The affinity is one core, so that a library that ignores its thread setting cannot use two (rule 9)."""
    save, _ = run_faulty("busy_threads", on=replace(bench, launcher=single), threads="1")
    assert save.failure is None
    assert save.figures["cpu_ns"] <= 1.05 * save.figures["wall_ns"]


@pytest.mark.rule(13)
def test_peak_memory_of_a_save_that_grows(run_faulty: Executor, dataset: StoredDataset) -> None:
    """100 MB are allocated and freed within a save. Both the launcher and the kernel see them (rule 13)."""
    save, _ = run_faulty("grows_100_mb")
    for figure in ("peak_private_bytes", "peak_rss_bytes"):
        assert 99e6 <= save.figures[figure] < 115e6 + dataset.size_bytes, figure


@pytest.mark.rule(13)
def test_a_save_that_copies_nothing_peaks_at_nothing(bench: Bench, cache_folder: Path, faulty: None) -> None:
    """The input, 40 MB here, is already in private memory, so the peak includes only the call's own memory
    (rule 13)."""
    large = prepare(resolve("synthetic", {"int": "10"}, rows=500_000), cache_folder)
    assert large.size_bytes > 39e6
    chain = chain_of("faulty[fault=copies_nothing]")
    save, read = execute(bench, chain, large, rows=large.rows, round_number=1, position=0, need_bytes=0)
    assert (save.failure, read.failure) == (None, None)
    assert save.figures["size_bytes"] > 39e6
    for figure in ("peak_private_bytes", "peak_rss_bytes"):
        assert save.figures[figure] < 2e6, figure


@pytest.mark.slow
@pytest.mark.rule(18)
def test_spawn_measures_the_same_way(run_faulty: Executor, bench: Bench, launcher: Launcher) -> None:
    save, read = run_faulty("spy", on=replace(bench, launcher=Spawning(launcher, "save")))
    assert read.fidelity == "exact"
    assert SAVE_SLEEP_NS <= save.figures["wall_ns"] < SAVE_SLEEP_NS + NOISE_NS


def test_execute_returns_one_sample_an_operation(bench: Bench, dataset: StoredDataset, faulty: None) -> None:
    """If no read was requested, a sample for the read that verifies the save is returned as well."""
    chain = replace(chain_of("faulty"), operations=("save",))
    save, read = execute(bench, chain, dataset, rows=500, round_number=0, position=3, need_bytes=0)
    assert (save.operation, read.operation) == ("save", "read")
    assert (save.rows, save.round, save.position, save.counted) == (500, 0, 3, False)
    assert (read.rows, read.round, read.position) == (500, 0, 4)
    assert (save.in_service, read.in_service) == (False, True)
