"""What goes wrong in a chain is found, named, and leaves neither figures nor files nor processes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench_runner import linux
from bench_runner.chains import Bench, ChainFailed, execute, refuse_more_than_one_core
from bench_runner.settle import Settler
from data_generator.cache import StoredDataset
from tests.bench_runner.conftest import Executor, chain_of
from tests.plugins.faulty_formats import READ_SLEEP_S, SAVE_SLEEP_S, STORED_SLEEP_S

MS = 10**6
SAVE_SLEEP_NS, READ_SLEEP_NS, STORED_SLEEP_NS = (int(s * 1e9) for s in (SAVE_SLEEP_S, READ_SLEEP_S, STORED_SLEEP_S))


def test_a_good_chain_gives_two_verified_samples(run_faulty: Executor, dataset: StoredDataset, bench: Bench) -> None:
    save, read = run_faulty("none")
    assert (save.operation, read.operation) == ("save", "read")
    assert save.failure is None
    assert read.failure is None
    assert read.fidelity == "exact"
    assert save.codec == "none"
    assert save.dataset_digest == read.dataset_digest == dataset.digest
    assert save.figures["size_bytes"] >= dataset.size_bytes * 0.9
    assert save.figures["allocated_bytes"] >= save.figures["size_bytes"] * 0.9
    assert read.figures["resident_before_bytes"] >= 0.99 * save.figures["size_bytes"]
    assert list(bench.folder.iterdir()) == []


def test_the_clock_holds_the_call_and_nothing_else(run_faulty: Executor) -> None:
    """Rules 2 and 6: loading, priming, reading back and verifying lie outside; known sleeps say so."""
    save, read = run_faulty("spy")
    assert SAVE_SLEEP_NS <= save.figures["wall_ns"] < SAVE_SLEEP_NS + 100 * MS
    assert READ_SLEEP_NS <= read.figures["wall_ns"] < READ_SLEEP_NS + 100 * MS
    assert save.figures["engine_ns"] >= SAVE_SLEEP_NS
    assert save.figures["first_call_ns"] >= SAVE_SLEEP_NS
    assert read.figures["first_call_ns"] >= READ_SLEEP_NS
    assert save.figures["cpu_ns"] < SAVE_SLEEP_NS / 2
    assert save.figures["sync_ns"] < STORED_SLEEP_NS
    assert save.figures["prepare_ns"] >= SAVE_SLEEP_NS


MISMATCHES = {
    "drop_last_row": "rows",
    "swap_rows": "row 3",
    "int_to_float": "int64",
    "none_to_empty": "stored None",
    "fault_in_lossy": "row 5",
}


@pytest.mark.parametrize("fault", MISMATCHES)
@pytest.mark.parametrize("target", ["arrow", "pandas"])
def test_a_wrong_result_shows_no_figure(run_faulty: Executor, fault: str, target: str) -> None:
    """Rule 11: planted faults are found in the sample that was timed, and the save does not count either."""
    save, read = run_faulty(fault, target=target)
    assert read.failure is not None
    assert read.failure.kind == "mismatch"
    if target == "arrow":
        assert MISMATCHES[fault] in read.failure.reason
    assert read.figures == {}
    assert save.figures == {}
    assert save.failure is not None


@pytest.mark.parametrize("fault", ["mapped", "mapped_deleted"])
def test_a_result_in_a_mapping_is_refused(run_faulty: Executor, fault: str) -> None:
    """Rule 7: a result that lies in a file mapping is a variant of its own."""
    _, read = run_faulty(fault)
    assert read.failure is not None
    assert read.failure.kind == "mismatch"
    assert "mapping" in read.failure.reason


@pytest.mark.parametrize("fault", ["stray_beside", "stray_in_working_directory", "stray_in_temporary"])
def test_a_write_outside_its_place_is_found(run_faulty: Executor, bench: Bench, fault: str) -> None:
    save, read = run_faulty(fault)
    assert save.failure is not None
    assert save.failure.kind == "mismatch"
    assert "outside its place" in save.failure.reason
    assert read.failure is not None
    assert read.failure.kind == "skipped"
    assert list(bench.folder.iterdir()) == []


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
    "refuses": ("refused", "no tables on Saturdays"),
    "nothing_written": ("", ""),
    "wrong_codec": ("mismatch", "codec"),
}


@pytest.mark.parametrize("fault", ENDINGS)
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


@pytest.mark.parametrize("fault", ["hangs", "hangs_on_read"])
def test_a_worker_that_hangs_is_ended(run_faulty: Executor, bench: Bench, fault: str) -> None:
    samples = run_faulty(fault, on=replace(bench, timeout_s=1.0))
    failed = samples[0] if fault == "hangs" else samples[1]
    assert failed.failure is not None
    assert failed.failure.kind == "timeout"
    assert "--timeout" in failed.failure.reason
    assert all(sample.figures == {} for sample in samples)


def test_a_worker_that_allocates_without_end_is_ended(
    run_faulty: Executor, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 5: the worker dies, not the machine."""
    monkeypatch.setattr(linux, "available_bytes", lambda: 600 * 10**6)
    save, _ = run_faulty("allocates")
    assert save.failure is not None
    assert save.failure.kind == "memory"
    assert "0.5 GB" in save.failure.reason


def test_no_process_outlives_its_chain(run_faulty: Executor) -> None:
    save, _ = run_faulty("starts_a_child")
    # Workers keep the command line of the forkserver that forked them; so does what they fork.
    servers = [process for process in psutil.process_iter() if "bench_runner.forkserver" in _command(process)]
    ours = [process for process in servers if process.ppid() == os.getpid()]
    orphans = [process for process in servers if process.ppid() == 1]
    assert len(ours) == 1
    assert orphans == []
    assert save.figures


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A real file system of 100 MB, where the test may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", folder], capture_output=True)
    if done.returncode != 0:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


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


def test_one_thread_is_held_to_one_core(run_faulty: Executor, bench: Bench, faulty: None) -> None:
    """Rule 9: one core by affinity, so that even a library that ignores its setting cannot use two."""
    from bench_runner.launcher import Launcher

    single = Launcher(isolate="forkserver", threads=1, preload=["faulty"])
    try:
        save, _ = run_faulty("busy_threads", on=replace(bench, launcher=single), threads="1")
    finally:
        single.close()
    assert save.failure is None
    assert save.figures["cpu_ns"] <= 1.05 * save.figures["wall_ns"]


def test_more_than_one_core_is_refused() -> None:
    refuse_more_than_one_core({"cpu_ns": 104, "wall_ns": 100})
    with pytest.raises(ChainFailed, match=r"1\.06 cores"):
        refuse_more_than_one_core({"cpu_ns": 106, "wall_ns": 100})


def test_peak_memory_of_a_save_that_grows(run_faulty: Executor, dataset: StoredDataset) -> None:
    """Rule 13: 100 MB taken and given back within a save are seen from outside and by the kernel."""
    save, _ = run_faulty("grows_100_mb")
    for figure in ("peak_private_bytes", "peak_rss_bytes"):
        assert 99e6 <= save.figures[figure] < 115e6 + dataset.size_bytes, figure


def test_spawn_measures_the_same_way(run_faulty: Executor, bench: Bench) -> None:
    from bench_runner.launcher import Launcher

    save, read = run_faulty("spy", on=replace(bench, launcher=Launcher(isolate="spawn", threads=None, preload=[])))
    assert read.fidelity == "exact"
    assert SAVE_SLEEP_NS <= save.figures["wall_ns"] < SAVE_SLEEP_NS + 100 * MS


def test_cold_is_proven(run_faulty: Executor, bench: Bench) -> None:
    """Rule 14, on a file system that has a device below; elsewhere the run refuses beforehand."""
    from bench_runner.environment import folder_facts, supports_cold

    if supports_cold(folder_facts(bench.folder).get("filesystem")):
        pytest.skip("no cold cache on this file system")
    _, read = run_faulty("none", cache="cold")
    assert read.failure is None
    assert read.figures["resident_before_bytes"] == 0
    assert read.figures["device_read_bytes"] > 0


def test_execute_returns_one_sample_an_operation(bench: Bench, dataset: StoredDataset) -> None:
    chain = replace(chain_of("faulty"), operations=("save",))
    (save,) = execute(bench, chain, dataset, rows=500, round_number=0, position=3, need_bytes=0)
    assert (save.rows, save.round, save.position, save.counted) == (500, 0, 3, False)
