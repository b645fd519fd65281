"""The command line: valid and invalid words, hints, exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from bench_runner.results.records import Run, changed
from bench_runner.suites import SUITES
from format_bench import cli
from format_bench.errors import Interrupted
from formats.registry import FORMATS
from image_storages.registry import STORAGES
from tests.reports.factory import make_run, write_run


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.mark.parametrize(
    "words",
    [["--help"], ["run", "--help"], ["list", "--help"], ["report", "-h"], ["doctor", "-h"], ["side-by-side", "--help"]],
)
def test_help(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "Usage: format-bench" in out
    assert max(map(len, out.splitlines())) <= 100


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"format-bench {metadata.version('format-bench')}\n"


def test_the_help_of_run_names_the_suites_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    told = " ".join(run(capsys, "run", "--help")[1].split())
    about = {option: told.partition(f"--{option} ")[2].partition(" --")[0] for option in ("target", "threads")}
    for suite in SUITES.values():
        assert (suite.name in re.findall(r"[a-z-]+", about["target"])) is (suite.target == "arrow")
        assert (f"both in the suite {suite.name}" in about["threads"]) is (len(suite.threads) > 1)


def test_the_thesis_flag_is_the_run_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rows", "1000", "--datasets", "eq", "--formats", "csv", "--list"]
    assert run(capsys, "--tabular", *words) == run(capsys, "run", "tabular", *words)
    code, out, _ = run(capsys, "--tabular", *words)
    assert code == 0
    assert "tabular/save/eq/csv[engine=pandas]  track=plain" in out


def test_a_plan_shows_every_condition_in_which_its_chains_differ(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "run", "near-storage", "--formats", "parquet", "--list")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == len(set(lines)) > 3
    assert {"network=one-process", "network=loopback"} <= {word for line in lines for word in line.split()}
    assert "cache=" not in out


WRONG = [
    (["run"], "No suite"),
    (["run", "tabluar"], "did you mean 'tabular'"),
    (["run", "tabular", "--budget", "soon"], "90s, 10m or 2h"),
    (["run", "tabular", "--rows", "0"], "--rows"),
    (["run", "tabular", "--datasets", "nosuch", "--list"], "matches no data set"),
    (["run", "tabular", "--webface", "/nosuch/file"], "--webface must be an existing HDF5 file (got '/nosuch/file')"),
    (["run", "tabular", "--work-dir", "/nosuch"], "--work-dir must be folders that exist (got '/nosuch')"),
    (["run", "tabular", "--resume"], "--out"),
    (["run", "tabular", "--quick", "--rounds", "3"], "--quick measures one round"),
    (["--tabular", "--nosuch"], "No such option"),
    (["report", "/nosuch"], "no run.json"),
    (["list", "cars"], "cars"),
    (["nosuch"], "No such command"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_a_wrong_request_is_two_lines_and_code_2(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert code == 2
    assert said in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""


def test_out_must_be_new(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    code, _, err = run(capsys, "run", "tabular", "--rows", "1000", "--out", str(tmp_path))
    assert code == 2
    assert "add --resume" in " ".join(err.split())
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("what", ["suites", "formats", "datasets", "cells"])
def test_lists(capsys: pytest.CaptureFixture[str], what: str) -> None:
    code, out, _ = run(capsys, "list", what)
    assert code == 0
    assert out
    # A cell is one line whatever its names, to be searched and pasted.
    assert what == "cells" or max(map(len, out.splitlines())) <= 130


def test_listings_show_maturity(capsys: pytest.CaptureFixture[str]) -> None:
    for what, registry in (("formats", FORMATS), ("storages", STORAGES)):
        _, out, _ = run(capsys, "list", what)
        for name in registry:
            part = re.search(rf"^{name} .*?(?=^\S|\Z)", out, re.MULTILINE | re.DOTALL)
            assert part is not None
            told = registry.engines(name)[0].maturity
            assert f"{told.stage.value}: {told.reason}" in " ".join(part[0].split()), name
    _, out, _ = run(capsys, "list", "formats")
    assert out.count("(ours)") == 4, "F3, the layout of tables by PyTables, near storage, and the yardstick"
    assert "retired" in out, "an engine that differs from its format says so"
    assert out.count("an Apache specification since 2009") == 1, "two engines of Avro are alike in it"


def test_the_command_line_loads_no_suite_and_listing_formats_no_format_library() -> None:
    code = (
        "import sys\nimport format_bench.cli\nprint('bench_runner.suites' in sys.modules)\n"
        "from format_bench.commands.listings import LISTINGS\nlist(LISTINGS['formats']())\n"
        "print(sorted({'pandas', 'pyarrow', 'lance', 'tables', 'vortex', 'openpyxl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110)
    assert done.stdout.splitlines() == ["False", "[]"], done.stderr


def test_stored_runs_are_reported_and_compared_without_pandas_and_pyarrow(tmp_path: Path) -> None:
    """Loading them takes three times as long as the rest."""
    one, two = (str(write_run(make_run(), tmp_path / name)) for name in ("one", "two"))
    code = (
        "import sys\nfrom format_bench.cli import main\n"
        f"for words in (['report', {one!r}], ['compare', {one!r}, {two!r}]):\n"
        "    try:\n        main(words)\n    except SystemExit as ended:\n        assert not ended.code, ended.code\n"
        "print(sorted({'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_damaged_run_is_reported_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    code, _, err = run(capsys, "report", str(tmp_path))
    assert code == 2
    assert "not readable as JSON" in err


def test_list_without_a_suite_lists_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", "--list")
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")] == list(SUITES)
    assert "run SUITE --list" in err
    code, _, err = run(capsys, "run", "--list", "--formats", "csv")
    assert code == 2, "a wish without a suite is not passed over"
    assert "No suite" in err


HINTS = [
    (["--engines"], "No such option --engines. To measure the suite: 'run engines'"),
    (["--engine", "--quick"], "No such option --engine. To measure the suite: 'run engines'"),
    (["run", "tabular", "--choice"], "No such option --choice. To measure the suite: 'run choice'"),
    (["--tabluar", "--report"], "No such option --tabluar. Did you mean --tabular?"),
    (["run", "tabular", "--form"], "No such option '--form'"),
    (["--nosuch"], "No such option '--nosuch'"),
    (["reprot"], "No such command 'reprot' (did you mean 'report'?)"),
    (["engines"], "No such command 'engines'. To measure the suite: 'run engines'"),
    (["recommend", "-d", "eq", "--use", "tkae 5 rows"], "--use: 'tkae 5 rows' is not understood (did you mean"),
    (["recommend", "-d", "eq", "--prefer", "tak=3"], "'tak' cannot be weighed (did you mean 'take'?)"),
    (["report", "reference", "--against", "nobody"], "is not one of 'thesis', 'lance', 'f3'"),
    (["nosuch"], "Commands: run, inspect, ask, recommend, convert, report, compare, side-by-side, list, doctor"),
]


@pytest.mark.parametrize(("words", "said"), HINTS)
def test_an_unknown_word_gets_a_hint(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_one_program_has_three_names() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    shown = [
        subprocess.run([sys.executable, *words, "--help"], cwd=root, capture_output=True, text=True, timeout=110).stdout
        for words in (["main.py"], ["-m", "format_bench"])
    ]
    assert shown[0] == shown[1] != ""
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"] == {
        "format-bench": "format_bench.cli:main"
    }


def test_every_report_is_made_from_a_stored_folder_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = write_run(make_run(datasets=("eq",), tracks=("plain",), rounds=5), tmp_path / "run")
    for words, shown in (
        ([], "tabular: eq"),
        (["--fidelity"], "what comes back"),
        (["--fidelity", "--markdown"], "| kind |"),
        (["--against", "thesis"], "findings:"),
        (["--against", "thesis", "--markdown"], "## Findings"),
    ):
        code, out, _ = run(capsys, "report", str(folder), *words)
        assert code == 0
        assert shown in out
    assert sorted(path.name for path in folder.iterdir()) == ["fidelity.jsonl", "run.json", "samples.jsonl"]
    assert run(capsys, "report", str(folder), "--csv") == (0, f"{folder / 'results-eq-plain.csv'}\n", "")


# --- Ctrl-C while a run measures -------------------------------------------------------------------------------------


def stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, *, terminal: bool
) -> tuple[int, str, str]:
    """Run `run`, stopped by `error`, on a terminal or into a pipe: exit code, output, errors."""
    from format_bench.api import run as api

    def measured(*suites: str, **keywords: object) -> None:
        raise error

    monkeypatch.setattr(api, "run", measured)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    return run(capsys, "run", "tabular")


def test_a_stopped_run_shows_its_table_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    invented = make_run(datasets=("eq",), tracks=("plain",), rounds=2, info={"partial": True})
    folder = write_run(invented, tmp_path / "run")
    code, out, err = stopped(monkeypatch, capsys, Interrupted(folder), terminal=True)
    assert code == 130
    assert "tabular: eq, 1,000,000 rows" in out
    assert "warning: the run did not finish; run the same command with --resume" in out
    first, second = err.splitlines()
    assert str(folder) in first
    assert f"--out {folder} and --resume" in second
    code, out, err = stopped(monkeypatch, capsys, Interrupted(folder), terminal=False)
    assert (code, out) == (130, "")
    assert "--resume" in err


def test_a_run_stopped_before_its_first_figure_shows_only_how_to_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_of_one = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
    pilot = tuple(changed(sample, round=0) for sample in run_of_one.samples)
    for name, samples in (("nothing", ()), ("pilot", pilot)):
        folder = write_run(replace(run_of_one, samples=samples), tmp_path / name)
        code, out, err = stopped(monkeypatch, capsys, Interrupted(folder), terminal=True)
        assert (code, out) == (130, "")
        assert "--resume" in err
    code, out, err = stopped(monkeypatch, capsys, KeyboardInterrupt(), terminal=True)
    assert (code, out, err.split("\n")[0]) == (130, "", "stopped")


def stopped_recommendation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, places: Mapping[str, Run]
) -> tuple[int, str]:
    """Stop `recommend` by Ctrl-C with these runs in its folder: exit code and errors."""
    from format_bench.api import measured

    def stop(request: object, options: object, new_folder: Callable[[], Path], *_: object, **__: object) -> None:
        folder = new_folder() if places else tmp_path
        for place, invented in places.items():
            write_run(invented, folder / place)
        raise KeyboardInterrupt

    monkeypatch.setattr(measured, "measure_for_choice", stop)
    code, _, err = run(capsys, "recommend", "-d", "eq", "--out", str(tmp_path / "out"))
    return code, err


def test_a_stopped_recommendation_names_what_is_kept_and_the_command_that_answers_from_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    counted = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
    pilot = replace(counted, samples=tuple(changed(sample, round=0) for sample in counted.samples))
    for number, (places, said) in enumerate(
        (
            ({}, "stopped; nothing was measured yet"),
            ({"sifting": pilot}, "No round was counted yet"),
            ({"sifting": counted}, "out/sifting."),
            ({"sifting": counted, ".": pilot}, "out/sifting."),
            ({"sifting": counted, ".": counted}, "out."),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, err = stopped_recommendation(monkeypatch, capsys, folder, places)
        assert code == 130
        assert said in err


def test_ctrl_c_is_reported_by_verbs_that_keep_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench_runner.machine import doctor

    def cut(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", cut)
    code, _, err = run(capsys, "doctor")
    assert (code, err.strip()) == (130, "stopped")


def test_a_second_ctrl_c_cuts_the_table_but_not_how_to_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from reports.text import terminal

    def cut(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "show", cut)
    folder = write_run(make_run(datasets=("eq",), tracks=("plain",), rounds=1), tmp_path / "run")
    code, _, err = stopped(monkeypatch, capsys, Interrupted(folder), terminal=True)
    assert code == 130
    assert "--resume" in err
