"""Two environments measured in turns: the order of turns, the rounds that are kept, and errors of a failed turn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench_runner.errors import RunError
from bench_runner.results.records import RecordError, read_run, write_run_info
from bench_runner.run import side_by_side
from bench_runner.run.side_by_side import Environment, check, measure_in_turn, rounds_there, turns
from bench_runner.run.turns import Turn
from bench_runner.variants import operation_name_of, variant_of
from format_bench.cli import main
from format_bench.progress import Silent

ROOT = Path(__file__).resolve().parents[3]
FAKE = """#!{python}
import json, os, sys, time
from pathlib import Path
words = sys.argv[1:]
if "run" not in words:
    sys.exit(0)
with open({journal!r}, "a") as journal:
    print(json.dumps(words + json.loads(os.environ["FORMAT_BENCH_PAUSED"])), file=journal)
folder = Path(words[words.index("--out") + 1])
rounds = int(words[words.index("--rounds") + 1])
folder.mkdir(parents=True, exist_ok=True)
info = dict(schema={schema}, partial=False, rounds_asked=rounds)
info["stages_ns"] = {{f"round {{number}}": {round_ns} for number in range(1, rounds + 1)}}
(folder / "run.json").write_text(json.dumps(info))
{then}
"""


WAITS = """
import socket
control = socket.socket(fileno=int(os.environ["FORMAT_BENCH_TURNS"])).makefile("rwb")
def done():
    control.write(b"\\n")
    control.flush()
done()
for line in control:
    asked = json.loads(line)
    rounds = asked["rounds"]
    with open({journal!r}, "a") as journal:
        print(json.dumps(["waited", "--out", str(folder), "--rounds", rounds, *asked["paused"]]), file=journal)
    info["rounds_asked"] = rounds
    info["stages_ns"] = {{f"round {{number}}": {round_ns} for number in range(1, rounds + 1)}}
    (folder / "run.json").write_text(json.dumps(info))
    {instead}
    done()
Path(folder / "ended").touch()
"""


class Fakes:
    """Two fake interpreters. They record how they were called, and leave a run with the requested rounds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal"

    def make(self, *, then: str = "", round_ns: int = 10**12) -> list[Environment]:
        """`then` is Python code that the fake interpreters execute last."""
        from bench_runner.results.records import SCHEMA

        made = []
        for name in ("before", "after"):
            python = self.folder / f"python-{name}"
            python.write_text(
                FAKE.format(
                    python=sys.executable, journal=str(self.journal), schema=repr(SCHEMA), round_ns=round_ns, then=then
                )
            )
            python.chmod(0o755)
            made.append(Environment(name, python, self.folder / "out" / name))
        return made

    def make_waiting(self, *, instead: str = "", round_ns: int = 10**12) -> list[Environment]:
        """Return interpreters that wait after each turn. `instead` is Python code that they execute at the end of a
        further turn."""
        waits = WAITS.format(journal=str(self.journal), round_ns=round_ns, instead=instead)
        return self.make(then=waits, round_ns=round_ns)

    def calls(self) -> list[list[str]]:
        """Return the command-line words of each call, in order."""
        return [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []

    def turns(self) -> list[tuple[str, int]]:
        """Return (side, rounds) of each turn."""
        return [
            (Path(words[words.index("--out") + 1]).name, int(words[words.index("--rounds") + 1]))
            for words in self.calls()
        ]


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    return Fakes(tmp_path)


def taken(environments: Sequence[Environment], rounds: int, look: Any = lambda: None) -> None:
    measure_in_turn(environments, ["tabular"], rounds, Silent(), look)


def test_turns_alternate_and_end_where_asked() -> None:
    found = list(turns("ab", 7, lambda: 3))
    assert found == [("a", 1), ("b", 1), ("b", 4), ("a", 4), ("a", 7), ("b", 7)]
    assert list(turns("ab", 1, lambda: 3)) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("fit", "ends"),
    [
        (1, list(range(1, 51))),
        (3, [1, 4, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40, 44, 47, 50]),
        (8, [1, 10, 20, 30, 40, 50]),
        (15, [1, 10, 20, 30, 40, 50]),
        (25, [1, 20, 40, 50]),
        (39, [1, 40, 50]),
    ],
)
def test_turns_end_where_decisions_are_made(fit: int, ends: list[int]) -> None:
    assert [upto for side, upto in turns("ab", 50, lambda: fit) if side == "a"] == ends


def test_each_environment_measures_by_its_own_interpreter_and_goes_on_with_its_run(fakes: Fakes) -> None:
    taken(fakes.make(), 3)
    assert fakes.turns() == [("before", 1), ("after", 1), ("after", 2), ("before", 2), ("before", 3), ("after", 3)]
    for words in fakes.calls():
        assert words[:2] == ["-P", "-c"]
        assert words[3:5] == ["run", "tabular"]
    assert ["--resume" in words for words in fakes.calls()] == [False, False, True, True, True, True]


def test_short_rounds_are_taken_several_in_a_turn(fakes: Fakes) -> None:
    quarter_ns = int(side_by_side.TURN_S * 1e9 / 4)
    taken(fakes.make(round_ns=quarter_ns), 9)
    assert [rounds for name, rounds in fakes.turns() if name == "before"] == [1, 6, 9]


def test_what_is_decided_pauses_and_all_ends_when_every_one_is_decided(fakes: Fakes) -> None:
    csv, orc = ["csv", "read"], ["orc", "save"]
    answers = iter(([csv], [csv, orc], None))
    environments = fakes.make(round_ns=int(side_by_side.TURN_S * 1e9 / 10))
    measure_in_turn(environments, ["tabular"], 240, Silent(), lambda: None, lambda already: next(answers))
    assert [rounds for name, rounds in fakes.turns() if name == "before"] == [1, 10, 20, 30]
    paused = [words[words.index("--resume") + 1 :] for words in fakes.calls() if "--resume" in words]
    assert paused == [*[[]] * 2, *[[csv]] * 2, *[[csv, orc]] * 2]


def test_a_run_that_waits_takes_further_turns_and_ends_at_the_end(fakes: Fakes) -> None:
    csv = variant_of("csv[engine=pandas]"), operation_name_of("read")
    orc = variant_of("orc[engine=pyarrow]"), operation_name_of("save")
    answers = iter(([csv], [orc, csv], None))
    environments = fakes.make_waiting(round_ns=int(side_by_side.TURN_S * 1e9 / 20))
    measure_in_turn(environments, ["tabular"], 240, Silent(), lambda: None, lambda already: next(answers))
    calls = [words for words in fakes.calls() if words[2].endswith("before")]
    assert [words[4:] for words in calls] == [[20], [40, list(csv)], [60, list(csv), list(orc)]]
    assert [words[words.index("--rounds") + 1] for words in fakes.calls() if "run" in words] == ["1", "1"]
    assert all((environment.folder / "ended").exists() for environment in environments)


def test_any_number_of_operations_can_be_paused(fakes: Fakes) -> None:
    one, _ = fakes.make_waiting()
    paused = tuple((f"csv[separator={number}]", "read") for number in range(20_000))
    with side_by_side._runs() as runs:
        for turn in (Turn(1, ()), Turn(2, paused)):
            side_by_side._take_turn(runs, one, ["tabular"], turn)
    assert len(fakes.calls()[1]) == 5 + len(paused)


def test_what_waits_when_the_other_fails_ends_by_itself(fakes: Fakes) -> None:
    environments = fakes.make_waiting(instead="if 'after' in str(folder): sys.exit(3)")
    with pytest.raises(RunError, match="after: its run ended with exit code 3"):
        taken(environments, 2)
    assert (environments[0].folder / "ended").exists()


def test_a_run_that_is_killed_in_a_further_turn_is_named(fakes: Fakes) -> None:
    with pytest.raises(RunError) as refused:
        taken(fakes.make_waiting(instead="os.kill(os.getpid(), 9)"), 2)
    assert str(refused.value) == "after: its run ended with exit code -9"


def test_a_run_that_is_killed_while_it_waits_is_named(fakes: Fakes) -> None:
    killed = "done(); os.kill(os.getpid(), 9)"
    with pytest.raises(RunError) as refused:
        taken(fakes.make_waiting(instead=f"if rounds == 2: {killed}"), 3)
    assert str(refused.value) == "before: its run ended with exit code -9"


def test_what_is_there_is_not_measured_again(fakes: Fakes) -> None:
    environments = fakes.make()
    taken(environments, 2)
    first = len(fakes.calls())
    taken(environments, 3)
    assert fakes.turns()[first:] == [("before", 3), ("after", 3)]


def test_a_part_that_was_stopped_is_gone_on_with(fakes: Fakes) -> None:
    environments = fakes.make()
    taken(environments, 2)
    stored = environments[0].folder / "run.json"
    stored.write_text(json.dumps(json.loads(stored.read_text()) | {"partial": True}))
    first = len(fakes.calls())
    taken(environments, 3)
    # The earlier turns of this side are stored, so only the stopped turn is repeated.
    assert fakes.turns()[first:] == [("before", 2), ("before", 3), ("after", 3)]


@pytest.mark.parametrize(
    ("info", "there"),
    [
        ({"partial": False, "rounds_asked": 7}, 7),
        ({"partial": True, "rounds_asked": 7}, 6),
        ({"partial": True, "rounds_asked": 100}, 19),
        ({"partial": False, "rounds_asked": None}, 0),
        ({}, 0),
    ],
)
def test_how_many_rounds_are_there(tmp_path: Path, info: dict[str, Any], there: int) -> None:
    assert rounds_there(tmp_path, 20) == 0
    write_run_info(tmp_path, info)
    assert rounds_there(tmp_path, 20) == there


@pytest.mark.parametrize(
    ("info", "place"),
    [
        ({"partial": False, "rounds_asked": "7"}, "$.rounds_asked"),
        ({"stages_ns": None}, "$.stages_ns"),
        ({"stages_ns": []}, "$.stages_ns"),
        ({"stages_ns": {"round 1": "long", "round 2": None}}, "$.stages_ns"),
    ],
)
def test_unreadable_rounds_are_refused_with_their_place(tmp_path: Path, info: dict[str, Any], place: str) -> None:
    write_run_info(tmp_path, info)
    with pytest.raises(RecordError) as refused:
        rounds_there(tmp_path, 20)
    assert place in str(refused.value)


@pytest.mark.parametrize("stages", [{}, {"data": 5}, {"round 1": 0}])
def test_a_run_without_known_round_times_gets_a_few_rounds_a_turn(fakes: Fakes, stages: Any) -> None:
    environments = fakes.make()
    taken(environments, 2)
    for environment in environments:
        stored = environment.folder / "run.json"
        stored.write_text(json.dumps(json.loads(stored.read_text()) | {"stages_ns": stages}))
    taken(environments, 3)
    assert rounds_there(environments[0].folder, 3) == 3


def test_one_look_after_the_first_turns_spares_the_others(fakes: Fakes) -> None:
    class OfNoUse(Exception):
        pass

    def look() -> None:
        raise OfNoUse

    with pytest.raises(OfNoUse):
        taken(fakes.make(), 5, look)
    assert fakes.turns() == [("before", 1), ("after", 1)]


def test_failed_cells_are_no_reason_to_stop(fakes: Fakes) -> None:
    taken(fakes.make(then="sys.exit(1)"), 2)
    assert len(fakes.turns()) == 4


def test_a_turn_that_fails_is_reported_with_its_side_and_reason(fakes: Fakes) -> None:
    said = "print('error: no suite is called tabluar\\n  there are: tabular', file=sys.stderr); sys.exit(2)"
    with pytest.raises(RunError) as refused:
        taken(fakes.make(then=said), 2)
    assert str(refused.value) == "before: no suite is called tabluar\n  there are: tabular"
    for then, told in (
        ("import os; os.kill(os.getpid(), 9)", "its run ended with exit code -9"),
        ("print('some warning', file=sys.stderr); sys.exit(3)", "its run ended with exit code 3: some warning"),
        (
            "print('Usage: x\\n\\nError: no such option: parse error: -x', file=sys.stderr); sys.exit(2)",
            "no such option: parse error: -x",
        ),
        ("sys.stderr.buffer.write(b'error: \\xff is no text\\n'); sys.exit(2)", "\ufffd is no text"),
        ("print('Stopped. All is in x\\n  --resume', file=sys.stderr); sys.exit(130)", "its run was stopped"),
        ("print('round 1, 9 s left\\nstopped; all is in x', file=sys.stderr); sys.exit(130)", "its run was stopped"),
    ):
        with pytest.raises(RunError) as refused:
            side_by_side._take_turn({}, fakes.make(then=then)[0], ["tabular"], Turn(2, ()))
        assert str(refused.value) == f"before: {told}"


def test_a_turn_that_was_not_finished_is_the_last(fakes: Fakes) -> None:
    full = (
        "info['partial'] = True; (folder / 'run.json').write_text(json.dumps(info))\n"
        "print('error: No space left on device', file=sys.stderr); sys.exit(1)"
    )
    with pytest.raises(RunError, match="before: No space left on device"):
        taken(fakes.make(then=full), 2)
    assert len(fakes.turns()) == 1


def test_an_interpreter_that_is_none_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"before='.*nowhere' cannot be started \(No such file or directory\)"):
        check(Environment("before", tmp_path / "nowhere", tmp_path))
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named bench_runner' >&2\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(RunError, match=r"cannot start Format Bench: ModuleNotFoundError(.|\n)*-m pip install -e \."):
        check(Environment("after", bare, tmp_path))
    bare.write_text("#!/bin/sh\necho 'unknown option -P' >&2\nexit 2\n")
    with pytest.raises(RunError, match=r"a Python older than 3\.11"):
        check(Environment("after", bare, tmp_path))
    check(Environment("after", Path(sys.executable), tmp_path))


def test_an_environment_sees_no_module_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench_runner").mkdir()
    (tmp_path / "bench_runner" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check(Environment("after", Path(sys.executable), tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_turn_with_how_to_resume(fakes: Fakes, number: signal.Signals) -> None:
    ended = fakes.folder / "ended"
    then = (
        f"import signal\ndef end(*_):\n    Path({str(ended)!r}).touch()\n    sys.exit(130)\n"
        f"signal.signal(signal.SIGTERM, end)\nPath({str(fakes.folder / 'ready')!r}).touch()\ntime.sleep(60)"
    )
    one, two = fakes.make(then=then)
    out = fakes.folder / "out"
    words = ("side-by-side", "tabular", "--before", one.python, "--after", two.python, "--out", out)
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from format_bench.cli import main; main(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 300
    while not (fakes.folder / "ready").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert ended.exists(), "the turn was not told to end"
    assert f"--out {out} --resume" in said
    assert "Traceback" not in said


def code_of(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_what_makes_no_sense_in_turn_is_refused(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = fakes.make()
    start = ("side-by-side", "--before", one.python, "--after", two.python)
    for words, told in (
        (("tabular", "--quick"), "side-by-side cannot use --quick"),
        (("tabular", "--budget=3m"), "side-by-side cannot use --budget"),
        ((), "No suite was named"),
        (("tabular", "--rounds", "6"), "x>=7"),
        (("tabular", "--resume"), "--resume needs --out"),
        (("tabular", "--resume", "--out", fakes.folder / "nothing"), "no runs to continue"),
    ):
        assert code_of(*start, *words) == 2
        assert told in capsys.readouterr().err
    assert fakes.calls() == []


def test_short_options_are_handed_on_with_their_values(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = fakes.make(then="sys.exit(2)")
    code_of(
        "side-by-side",
        "--before",
        one.python,
        "--after",
        two.python,
        "tabular",
        "-fhdf5",
        "--out",
        fakes.folder / "out",
    )
    assert "-fhdf5" in fakes.calls()[0]


def test_what_was_measured_is_named_when_a_later_turn_fails(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = fakes.make(then="sys.exit(2 if rounds > 1 else 0)")
    out = fakes.folder / "out"
    assert code_of("side-by-side", "--before", one.python, "--after", two.python, "tabular", "--out", out) == 1
    said = capsys.readouterr().err
    assert "error: after: its run ended with exit code 2" in said
    assert f"All that was measured is in {out}" in said


def test_killed_nothing_goes_on(fakes: Fakes) -> None:
    pid = fakes.folder / "pid"
    watched = "import os\nexec(words[2].partition('from')[0])"
    one, two = fakes.make(then=f"{watched}\nPath({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(60)")
    words = ("side-by-side", "tabular", "--before", one.python, "--after", two.python, "--out", fakes.folder / "out")
    process = subprocess.Popen([sys.executable, "main.py", *map(str, words)], cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = psutil.Process(int(pid.read_text()))
    process.kill()
    process.wait()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_request_that_fails_leaves_no_empty_folder(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    out = fakes.folder / "new"
    words = ("side-by-side", "--before", sys.executable, "--after", sys.executable, "tabluar", "--out", out)
    assert code_of(*words) == 2
    assert "did you mean 'tabular'" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_two_real_environments_end_in_a_comparison(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    at_rest = os.environ["PYTHONPATH"]
    monkeypatch.setenv("PYTHONPATH", "")
    out = tmp_path / "pair"
    words = (
        "--tabular",
        "--formats",
        "^pickle",
        "--datasets",
        "^eq$",
        "--rows",
        "500",
        "--rounds",
        "7",
        "--track",
        "plain",
        "--no-fidelity",
    )
    pythons = {}
    # The run of the first environment waits after its first turn. The second environment does not measure its first
    # turn but copies that of the first, and ends, like an older version. So its second turn resumes the copied run.
    measured = f"PYTHONPATH='{at_rest}' exec '{sys.executable}' \"$@\""
    copied = f"rm -rf '{out / 'after'}'; cp -r '{out / 'before'}' '{out / 'after'}'"
    for name, cases in (("before", ""), ("after", f"*' --resume'*) {measured} ;; *' run '*) {copied} ;;")):
        pythons[name] = tmp_path / f"python-{name}"
        pythons[name].write_text(f'#!/bin/sh\ncase "$*" in {cases} *) {measured} ;; esac\n')
        pythons[name].chmod(0o755)
    start = ("side-by-side", "--before", pythons["before"], "--after", pythons["after"], "--out", out)
    start = (*start, "--machine", "lab")
    assert code_of(*start, *words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["changes"]
    for name in ("before", "after"):
        run = read_run(out / name)
        assert run.info.partial is False
        # On a busy machine some samples are not counted, and are replaced in later rounds.
        assert {sample.round for sample in run.samples if sample.failure is None} >= {*range(1, 8)}
        assert len(run.info.resumed) == 1
        assert not any("another run" in warning.text for warning in run.info.warnings)
        assert run.info.probe is not None
        assert len(run.info.probe.known_answers) > 0
        assert {sample.machine for sample in run.samples} == {"lab"}
