"""A recommendation from the command line and from programs: measured in two parts, or from a stored run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from bench_runner import choosing, cli, recommend, run
from bench_runner.records import read_run

ROOT = Path(__file__).resolve().parents[2]
FEW = ("--formats", "^(parquet|feather|pickle)", "--datasets", "eq", "--budget", "5s", "--seed", "3")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, cache_folder: Path) -> subprocess.CompletedProcess[str]:
    """`recommend --json` on a table that is large enough to be sifted first."""
    folder = tmp_path_factory.mktemp("choice")
    command = [sys.executable, str(ROOT / "main.py"), "recommend", *FEW, "--rows", "21000", "--json", "--out", "out"]
    environment = {**os.environ, "FORMAT_BENCH_CACHE": str(cache_folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)


@pytest.mark.slow
def test_it_measures_in_two_parts_and_answers_with_every_figure(told: subprocess.CompletedProcess[str]) -> None:
    assert told.returncode == 0, told.stderr
    shape = json.loads(told.stdout)
    assert (shape["dataset"], shape["rows"]) == ("eq", 21000)
    assert shape["recommended"] == shape["ranked"][0]["variant"]
    assert [each["score"] for each in shape["ranked"]] == sorted(each["score"] for each in shape["ranked"])
    folder = Path(next(text for text in shape["remarks"] if text.startswith("all samples: "))[13:])
    sifting = read_run(folder / choosing.SIFTING)
    assert {sample.rows for sample in sifting.samples if sample.round == 1} == {20_000}
    assert "probe" not in sifting.info
    second = read_run(folder)
    assert second.info["probe"]["error_bytes"] > 0
    named = {each["variant"] for each in (*shape["ranked"], *shape["left_out"])}
    assert {sample.variant for sample in sifting.samples if not sample.variant.startswith("floor")} == named


@pytest.mark.slow
def test_the_lines_run_as_printed(told: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    python = json.loads(told.stdout)["python"]
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    frame.to_pickle(tmp_path / "frame.pkl")
    script = "\n".join(
        ["import pandas", "df = pandas.read_pickle('frame.pkl')", *python["imports"], python["save"], python["read"]]
    )
    checked = f"{script}\nassert df.to_dict() == {frame.to_dict()!r}"
    done = subprocess.run([sys.executable, "-c", checked], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_stored_run_answers_without_measuring(
    told: subprocess.CompletedProcess[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shape = json.loads(told.stdout)
    folder = next(text for text in shape["remarks"] if text.startswith("all samples: "))[13:]
    with pytest.raises(SystemExit) as ended:
        cli.main(["recommend", "--from", folder, "--need", "no-pickle", "--prefer", "size=1"])
    assert ended.value.code in (0, None)
    out = capsys.readouterr().out
    assert "recommended:" in out
    assert "cannot: no-pickle" in out


@pytest.mark.slow
def test_programs_use_the_same_words(tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    words = {"rows": 2_000, "datasets": ["^eq$"], "formats": "^(feather|pickle)", "no_fidelity": True, "quick": True}
    found = run("tabular", **words, out=tmp_path / "run")
    assert set(found["operation"]) == {"save", "read"}
    assert {name.partition("[")[0] for name in found["variant"]} == {"feather", "pickle", "floor"}
    assert (found["wall_ns"] > 0).all()
    assert found.attrs["folder"] == str(tmp_path / "run")
    answer = recommend(stored=tmp_path / "run", prefer={"read": 1, "size": 2})
    assert answer.found.ranked[0].candidate.variant.startswith(("feather", "pickle"))
    assert answer.read.startswith("df = ")


WRONG = [
    ([], "name what it is about"),
    (["--data", "x", "--from", "y"], "name what it is about"),
    (["--datasets", "eq", "--prefer", "speed=3"], "nothing is called 'speed'"),
    (["--datasets", "eq", "--need", "magic"], "--need 'magic' is not known"),
    (["--datasets", "eq", "--max-memory", "lots"], "write e.g. 500M or 8G"),
    (["--datasets", "eq", "--bandwidth", "fast"], "write e.g. 200MB/s"),
    (["--datasets", "eq", "--reads-per-save", "0"], "reads-per-save"),
    (["--data", "/nosuch/file"], "no such file"),
    (["--from", "/nosuch/run"], "no run.json"),
    (["--datasets", "nosuch"], "matches no data set"),
    (["--datasets", "eq", "--formats", "nosuch"], "nothing matches"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_a_wrong_question_is_told_in_two_lines(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["recommend", *words])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("results/*")), "a refused question leaves no result folder"


def test_a_wrong_keyword_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="No such option: --colour"):
        run("tabular", colour="red")
    with pytest.raises(ValueError, match="name what it is about"):
        recommend()
    with pytest.raises(ValueError, match="no suite is called 'tabluar'"):
        run("tabluar")
