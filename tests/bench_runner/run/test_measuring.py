"""A whole run, from the command line to the result folder: finished, stopped, killed and resumed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from bench_runner.errors import RunError
from bench_runner.plan.chain import Plan
from bench_runner.results.records import RunInfo, read_run, write_run_info
from bench_runner.run import measuring
from bench_runner.run.turns import CONTROL_VARIABLE, DONE, Turn
from bench_runner.run.work_folder import open_locked
from format_bench.cli import main
from tests.bench_runner.run.invented import session

ROOT = Path(__file__).resolve().parents[3]
SMALL = (
    *("run", "tabular", "--rows", "3000", "--datasets", "^eq$", "--track", "plain", "--no-fidelity", "--seed", "7"),
)
FEW = ("--formats", r"^(parquet\[engine=pyarrow.codec=none\]|csv\[engine=pandas\])$")
MEASURED = (*SMALL, "--rounds", "1", *FEW, "--machine", "lab")
PLUGINS = ROOT / "tests" / "plugins"


@pytest.fixture(scope="module")
def environment(cache_folder: Path) -> dict[str, str]:
    places = os.pathsep.join([str(PLUGINS), os.environ["PYTHONPATH"]])
    return {**os.environ, "FORMAT_BENCH_CACHE": str(cache_folder), "PYTHONPATH": places}


def format_bench(*words: str, environment: dict[str, str], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "main.py"), *words]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=600)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working directory is in this result folder, or whose command line contains
    its path."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join(process.cmdline()) or str(folder) in (process.cwd() or ""):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A finished run: its folder and its output."""
    out = tmp_path_factory.mktemp("finished") / "run"
    done = format_bench(*MEASURED, "--out", str(out), environment=environment)
    assert done.returncode == 0, done.stderr
    return out, done


@pytest.mark.slow
def test_a_run_leaves_verified_samples_and_nothing_else(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, done = finished
    assert "parquet" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr, "piped output stays clean"
    assert {path.name for path in out.iterdir()} == {"run.json", "samples.jsonl", "results-eq-plain.csv"}
    run = read_run(out)
    assert run.info.partial is False
    assert run.info.machine.name == "lab"
    assert run.info.seed == 7
    assert 0 < run.info.probe.error_bytes < 2e6
    assert run.info.libraries["pyarrow"]
    counted = [sample for sample in run.samples if sample.round > 0]
    assert {sample.variant.partition("[")[0] for sample in counted} == {"csv", "parquet", "raw-io"}
    assert all(sample.machine == "lab" for sample in run.samples)
    assert all(sample.failure is None for sample in run.samples)
    assert [sample.position for sample in run.samples] == list(range(len(run.samples)))
    for sample in counted:
        needed = {"wall_ns", "cpu_ns", "peak_private_bytes", "peak_rss_bytes", "control_write_ns", "first_call_ns"}
        assert needed <= set(sample.figures)
        assert sample.operation == "read" or {"size_bytes", "sync_ns", "dirtied_bytes"} <= set(sample.figures)
        assert sample.operation == "save" or sample.fidelity is not None


def started(words: tuple[str, ...], environment: dict[str, str], out: Path) -> subprocess.Popen[str]:
    """A run that has begun to write samples."""
    command = [sys.executable, str(ROOT / "main.py"), *words, "--out", str(out)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    deadline = time.monotonic() + 300
    while not (out / "samples.jsonl").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


LONG = (*SMALL, "--rounds", "30", *FEW)


@pytest.mark.slow
@pytest.mark.rule(5)
def test_kill_9_leaves_no_process_and_no_file(tmp_path: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "run"
    process = started(LONG, environment, out)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert any("forkserver" in " ".join(worker.cmdline()) for worker in workers)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    deadline = time.monotonic() + 60
    while (out / "work").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert {path.name for path in out.iterdir()} <= {"run.json", "run.partial", "samples.jsonl"}
    assert processes_of(out) == []
    assert read_run(out).info.partial is True


@pytest.mark.slow
def test_an_interrupted_run_shows_how_to_resume_and_resumes(
    faulty: None, runs_at_rest: None, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This test uses SIGTERM. tests/format_bench/test_live_table.py tests SIGINT on a terminal."""
    out = tmp_path / "run"
    process = started(LONG, environment, out)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 130, said
    assert "--resume" in said
    assert "Traceback" not in said
    assert not (out / "work").exists()
    before = read_run(out)
    assert before.info.partial is True
    words = (*SMALL, "--rounds", "1", *FEW, "--out", str(out), "--resume")
    monkeypatch.setenv("FORMAT_BENCH_CACHE", environment["FORMAT_BENCH_CACHE"])
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 0
    after = read_run(out)
    assert after.info.partial is False
    assert after.samples[: len(before.samples)] == before.samples, "nothing that was measured is lost or repeated"
    rounds = [(sample.cell, sample.round) for sample in after.samples]
    assert len(rounds) == len(set(rounds))
    assert after.info.resumed
    assert after.info.probe == before.info.probe, "the machine is the same, and its probe was tested"


@pytest.mark.slow
def test_a_run_waits_after_each_turn_and_measures_what_the_next_turn_asks_for(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The last turn is followed by SIGTERM, while the run waits."""
    out, csv = tmp_path / "run", "csv[engine=pandas]"
    ours, of_the_run = socket.socketpair()
    command = [sys.executable, str(ROOT / "main.py"), *SMALL, "--rounds", "1", *FEW, "--out", str(out)]
    with of_the_run:
        process = subprocess.Popen(
            command,
            env=environment | {CONTROL_VARIABLE: str(of_the_run.fileno())},
            pass_fds=(of_the_run.fileno(),),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    with ours:
        assert ours.recv(1) == DONE, process.communicate()
        for turn in (Turn(2, ()), Turn(3, ((csv, "save"), (csv, "read")))):
            with open_locked(Path(environment["FORMAT_BENCH_CACHE"])) as alone:
                assert alone
            children = psutil.Process(process.pid).children(recursive=True)
            assert not any("forkserver" in " ".join(child.cmdline()) for child in children)
            ours.sendall(msgspec.json.encode(turn) + b"\n")
            assert ours.recv(1) == DONE, process.communicate()
        process.terminate()
        _, said = process.communicate(timeout=200)
    assert (process.returncode, "Traceback" in said) == (130, False), said
    assert not (out / "work").exists()
    run = read_run(out)
    assert (run.info.partial, run.info.rounds_asked, len(run.info.resumed)) == (False, 3, 2)
    assert run.info.command[run.info.command.index("--rounds") + 1] == "3"
    found = sorted((sample.variant.partition("[")[0], sample.operation, sample.round) for sample in run.samples)
    last = {"csv": 2, "parquet": 3, "raw-io": 3}
    assert [each for each in found if each[2]] == [
        (name, operation, number)
        for name, rounds in last.items()
        for operation in ("read", "save")
        for number in range(1, rounds + 1)
    ]
    assert [sample.position for sample in run.samples] == list(range(len(run.samples)))
    assert {"round 1", "round 2", "round 3", "end"} <= run.info.stages_ns.keys()
    assert "waiting" not in run.info.stages_ns


def test_a_library_that_changes_between_turns_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = RunInfo(seed=1, partial=False, rounds_asked=1, libraries={"pandas": "3.1.0"}, command=("--rounds", "1"))
    write_run_info(tmp_path, info.shape())
    (tmp_path / "samples.jsonl").touch()
    monkeypatch.setattr(measuring.environment, "library_versions", lambda engines, others: {"pandas": "3.1.1"})
    monkeypatch.setattr(measuring.environment, "repository_state", lambda folder: {})
    with pytest.raises(RunError, match=r"pandas was 3\.1\.0 and is 3\.1\.1"):
        measuring._continue(session(folder=tmp_path, info=info, plan=Plan((), {}, ())), Turn(2, ()), {}, {})
    assert (info.partial, info.rounds_asked) == (False, 1)


def refused(*words: str) -> str:
    """Return the error of a request that is rejected, run in this process."""
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors), pytest.raises(SystemExit) as ended:
        main(list(words))
    assert (ended.value.code, said.getvalue()) == (2, "")
    return errors.getvalue()


@pytest.mark.slow
def test_a_changed_library_refuses_to_resume(
    faulty: None,
    tmp_path: Path,
    cache_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    out = Path(shutil.copytree(finished[0], tmp_path / "run"))
    words = (*MEASURED, "--out", str(out), "--resume")
    info = json.loads((out / "run.json").read_text())
    info["libraries"]["pandas"] = "1.0"
    (out / "run.json").write_text(json.dumps(info))
    assert "pandas was 1.0" in refused(*words)

    info["libraries"]["pandas"] = read_run(out).info.libraries["pyarrow"] and __import__("pandas").__version__
    info["datasets"]["eq"]["digest"] = "0" * 64
    (out / "run.json").write_text(json.dumps(info))
    assert "digest of the data set eq has changed" in refused(*words)


def test_working_folders_elsewhere_are_removed_too(tmp_path: Path) -> None:
    from bench_runner.run.work_folder import work_folders

    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    with work_folders("id", tmp_path / "run", ("default", str(elsewhere))) as folders:
        assert folders["default"] == tmp_path / "run" / "work"
        (folders[str(elsewhere)] / "file").write_text("x")
    assert list(elsewhere.iterdir()) == []
    assert not (tmp_path / "run" / "work").exists()


def test_working_folders_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom bench_runner.run.work_folder import work_folders\n"
        f"with work_folders('id', Path({str(tmp_path / 'run')!r}), ('default',)) as folders:\n"
        "    (folders['default'] / 'file').write_text('x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=300)
    deadline = time.monotonic() + 60
    while (tmp_path / "run" / "work").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not (tmp_path / "run" / "work").exists()


def test_a_signal_whose_exception_was_lost_stops_at_the_next_step() -> None:
    from bench_runner.run.interruption import Stopped, stopped_by_signals

    with stopped_by_signals() as stop:
        stop.check()
        with contextlib.suppress(KeyboardInterrupt):
            # A script's background process ignores SIGINT. The run must not change that.
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped, match="SIGTERM"):
            stop.check()


@pytest.mark.slow
def test_of_ones_own_table_a_sample_is_measured_and_failures_do_not_stop_the_rest(
    faulty: None,
    runs_at_rest: None,
    tmp_path: Path,
    cache_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    monkeypatch.setenv("FAULTY_FORMAT", "drop_last_row")
    out, path = tmp_path / "run", tmp_path / "mine.csv"
    shares = ("?" if number == 26_000 else number / 4 for number in range(40_000))
    path.write_text("word,share\n" + "".join(f"text {number % 9},{it}\n" for number, it in enumerate(shares)))
    words = (
        "run",
        "tabular",
        "--quick",
        "--no-fidelity",
        "--track",
        "plain",
        "--formats",
        r"^(faulty|pickle\[engine=pandas\]$)",
    )
    with pytest.raises(SystemExit) as ended:
        main([*words, "--rows", "20000", "--data", str(path), "--out", str(out)])
    assert ended.value.code == 1
    assert "tabular: table, a sample of 20,000 of 40,000 rows, track plain" in capsys.readouterr().out
    run = read_run(out)
    facts = run.info.datasets["table"]
    assert (facts.rows, facts.input_rows, facts.sampled_rows, facts.blocks) == (20_000, 40_000, 20_000, 16)
    (warning,) = [warning for warning in run.info.warnings if warning.text.startswith("table: ")]
    assert "'share': mixed, stays text; no number in 1 of 20,000 values (line 26,002: '?')" in warning.text
    assert (facts.columns, facts.understood["delimiter"]) == ({"word": "text", "share": "text"}, "comma")
    kinds = {(sample.variant.partition("[")[0], sample.failure and sample.failure.kind) for sample in run.samples}
    assert kinds == {("faulty", "skipped"), ("faulty", "mismatch"), ("raw-io", None), ("pickle", None)}
    reads = [sample for sample in run.samples if sample.operation == "read" and sample.failure is None]
    assert {sample.fidelity for sample in reads} == {"exact"}


def test_a_broken_table_is_two_lines_and_code_2(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n1,2\n3\n")
    problem, step = refused("run", "tabular", "--data", str(path)).splitlines()
    assert problem.startswith(f"error: {path}, line 3: has 1 column, but the header has 2")
    assert "--delimiter" in step


def test_that_others_measured_too_is_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_runner.run import measuring

    monkeypatch.setattr(measuring, "open_locked", lambda folder: contextlib.nullcontext(False))
    info = RunInfo()
    for _ in range(2):
        with measuring._others_named(info):
            assert len(info.warnings) == 1
