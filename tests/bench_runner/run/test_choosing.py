"""Recommendations from the command line and from Python: measured in two parts, or from a stored run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from bench_runner.data_kinds import IMAGES, TABLES, DataKind
from bench_runner.request import Request
from bench_runner.results.records import changed, read_run
from bench_runner.run import choosing
from bench_runner.run.options import Options
from format_bench import cli, recommend, run
from tests.reports.factory import make_run, make_sample, write_run

ROOT = Path(__file__).resolve().parents[3]
FEW = ("--formats", "^(feather.*none|pickle.*pandas]$)", "--datasets", "eq", "--budget", "1s", "--seed", "3")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored, invented run of one table."""
    run = make_run(datasets=("eq",), rounds=7)
    described = {name: changed(about, capabilities=("types",)) for name, about in run.info.variants.items()}
    told = replace(run, info=changed(run.info, variants=described))
    return write_run(told, tmp_path_factory.mktemp("stored") / "run")


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["recommend", *map(str, words)])
    return int(ended.value.code or 0), capsys.readouterr().out


@pytest.mark.slow
def test_it_measures_in_two_parts_and_reports_every_candidate(
    runs_at_rest: None,
    tmp_path: Path,
    cache_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The machine is seldom idle during tests, so no figures are required here."""
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    monkeypatch.chdir(tmp_path)
    # The rounds last as long as the budget, which suffices for some rounds.
    monkeypatch.setattr(choosing, "LEAST_BUDGET_S", 2.0)
    monkeypatch.setattr(choosing, "PREPARATION_S", 2.0)
    code, told = asked(capsys, *FEW, "--rows", "21000", "--json", "--out", "out")
    shape = json.loads(told)
    assert (shape["dataset"], shape["rows"]) == ("eq", 21000)
    assert code == (shape["recommended"] is None)
    screening, second = read_run(tmp_path / "out" / choosing.SCREENING), read_run(tmp_path / "out")
    assert {(sample.rows, sample.round > 0) for sample in screening.samples} == {(20_000, True)}
    assert not [sample for sample in second.samples if sample.round == 0], "the screening replaces the pilot round"
    assert screening.info.probe is None
    assert second.info.probe is not None
    assert second.info.probe.error_bytes > 0
    named = {each["variant"] for each in (*shape["ranked"], *shape["not_accepted"], *shape["left_out"])}
    assert {sample.variant for sample in screening.samples if not sample.variant.startswith("raw-io")} == named


def test_only_those_that_may_win_are_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[set[str], Options, Path]] = []
    races: list[Any] = []
    run = make_run(datasets=("eq",), tracks=("plain",))

    def measured(plan: Any, request: Any, options: Options, folder: Path, *rest: object) -> tuple[Any, bool]:
        seen.append(({chain.variant for chain in plan.chains if not chain.is_raw_io}, options, folder))
        races.append(rest[2] if len(rest) > 2 else None)
        return run, False

    monkeypatch.setattr(choosing, "measure", measured)
    request = Request(datasets=("eq",), rows=100_000, formats_not=("^csv",), baseline="csv[engine=pandas]")
    winners = ["feather[engine=pyarrow,codec=none]", "pickle[engine=pandas]"]
    choosing.measure_for_choice(
        request,
        Options(),
        lambda: tmp_path,
        [],
        SimpleNamespace(stage=lambda text: None, step=lambda text, left: None, note=lambda text: None),
        kind=TABLES,
        budget_s=120,
        may_win=lambda run: winners,
        contending=lambda run: (),
    )
    (first, brief, place), (second, counted, folder) = seen
    assert len(first) > 20
    assert {variant for variant in first if variant.startswith("csv")} == {"csv[engine=pandas]"}
    assert second == {*winners, "csv[engine=pandas]"}, "the baseline takes part to the end"
    assert races[0] is None
    assert (races[1].screening, races[1].contending(run)) == (run, ())
    assert (brief.brief, brief.quick, place) == (True, True, tmp_path / choosing.SCREENING)
    assert (counted.brief, counted.quick, folder) == (False, False, tmp_path)
    assert counted.budget_s is not None
    assert 60 < counted.budget_s < 120


def test_parts_of_a_table_are_measured_of_what_decides_their_cost() -> None:
    """Variants with small row groups are added. Variants that would read the whole file for minutes are left out."""
    whole = choosing.choosing_plan(Request(datasets=("eq",), rows=2_000), TABLES)
    take = "take[rows=100,handle=kept]"
    asked = Request(datasets=("eq",), rows=2_000, operations=("save", "read", take), target="arrow")
    parts = choosing.choosing_plan(asked, TABLES)
    assert "parquet[engine=pyarrow,codec=none,row_group_rows=8192]" in parts.variants
    assert "parquet[engine=pyarrow,codec=none,row_group_rows=8192]" not in whole.variants
    formats = {variant.partition("[")[0] for variant in parts.variants}
    assert {"excel", "xml"} <= {variant.partition("[")[0] for variant in whole.variants} - formats
    assert {chain.operations for chain in parts.chains} == {("save", "read", take)}
    assert {chain.conditions.target for chain in parts.chains} == {"arrow"}
    assert {chain.operations for chain in whole.chains} == {("save", "read")}


@pytest.mark.parametrize(
    ("words", "operations", "target"),
    [
        ({"uses": {"take": 1000, "read": 1}}, ("save", "read", "take[rows=100,handle=kept]"), "arrow"),
        ({"weights": {"project": 1, "size": 1}}, ("save", "read", "project[columns=4]"), None),
        ({"needs": ["projection"]}, ("save", "read", "project[columns=1]"), None),
        ({"needs": ["append"], "target": "pandas"}, (), "pandas"),
        ({"needs": ["pushdown"]}, ("save", "read", "scan[selectivity=0.01,kind=range]"), "arrow"),
        ({"needs": ["types"]}, (), None),
    ],
)
def test_what_a_question_is_about_is_measured(
    words: dict[str, Any],
    operations: tuple[str, ...],
    target: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    seen: list[Request] = []

    def answered(request: Request, *rest: object, **more: object) -> None:
        seen.append(request)

    monkeypatch.setattr("format_bench.api.recommend.measured_answer", answered)
    recommend(datasets="eq", out=tmp_path / "out", **words)
    assert [(request.operations, request.target) for request in seen] == [(operations, target)]


@pytest.mark.parametrize(
    ("figures", "stays"),
    [
        ({"wall_ns": 2 * 10**9}, True),
        ({"wall_ns": 3 * 10**9}, False),
        ({"wall_ns": 10**8, "calls_ns": 2 * 10**9}, True),
        ({"wall_ns": 10**8, "calls_ns": 3 * 10**9}, False),
    ],
)
def test_the_baseline_is_dropped_when_a_round_of_it_is_too_slow(
    figures: dict[str, int], stays: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On ten times as many rows the baseline would take over a quarter of the two minutes. For a block, all calls
    count."""
    sample = make_sample(variant="csv[engine=pandas]", figures=figures)
    screened = replace(make_run(datasets=("eq",)), samples=(sample,))
    seen: list[Any] = []

    def measured(plan: Any, request: Any, *rest: object) -> tuple[Any, bool]:
        seen.append((request.baseline, {chain.variant for chain in plan.chains if not chain.is_raw_io}))
        return screened, False

    monkeypatch.setattr(choosing, "measure", measured)
    choosing.measure_for_choice(
        Request(datasets=("eq",), rows=200_000, baseline="csv[engine=pandas]"),
        Options(),
        lambda: tmp_path,
        [],
        SimpleNamespace(stage=lambda text: None, step=lambda text, left: None, note=lambda text: None),
        kind=TABLES,
        budget_s=100,
        may_win=lambda run: ["pickle[engine=pandas]"],
        contending=lambda run: (),
    )
    assert seen[0][0] == "csv[engine=pandas]"
    assert "csv[engine=pandas]" in seen[0][1]
    own = {"csv[engine=pandas]"} if stays else set()
    assert seen[1] == ("csv[engine=pandas]" if stays else None, {"pickle[engine=pandas]"} | own)


@pytest.mark.parametrize(
    ("dataset", "kind", "few", "all_of_them"),
    [("eq", TABLES, 20_000, 200_000), ("cifar-like", IMAGES, 1_000, 10_000), ("imagenet-like", IMAGES, 497, 1_990)],
)
def test_by_default_as_much_is_measured_as_two_minutes_allow(
    dataset: str, kind: DataKind, few: int, all_of_them: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[int] = []

    def measured(plan: Any, *rest: object) -> tuple[Any, bool]:
        seen.extend(each.rows for each in plan.datasets.values())
        return make_run(datasets=("eq",)), False

    monkeypatch.setattr(choosing, "measure", measured)
    choosing.measure_for_choice(
        Request(datasets=(dataset,)),
        Options(),
        lambda: tmp_path,
        [],
        SimpleNamespace(stage=lambda text: None, step=lambda text, left: None, note=lambda text: None),
        kind=kind,
        budget_s=120,
        may_win=lambda run: (),
        contending=lambda run: (),
    )
    assert seen == [few, all_of_them]


def test_few_rows_need_no_screening(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choosing, "measure", lambda *given: (make_run(datasets=("eq",)), False))
    choosing.measure_for_choice(
        Request(datasets=("eq",), rows=20_000),
        Options(),
        lambda: tmp_path,
        [],
        SimpleNamespace(stage=lambda text: None, step=lambda text, left: None, note=lambda text: None),
        kind=TABLES,
        budget_s=1,
        may_win=lambda run: pytest.fail("nothing has to be screened"),
        contending=lambda run: (),
    )
    assert not (tmp_path / choosing.SCREENING).exists()


def test_what_the_recommended_format_cannot_do_comes_with_it(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the invented run, no format works without pickle or supports other languages."""
    _, told = asked(capsys, "--from", stored)
    assert "reading a pickle runs code" in told
    assert "add --need other-languages" in " ".join(told.split())
    _, told = asked(capsys, "--from", stored, "--need", "types")
    assert "reading a pickle runs code" in told
    _, refused = asked(capsys, "--from", stored, "--need", "no-pickle")
    assert "runs code" not in refused


def test_the_lines_run_as_printed(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = asked(capsys, "--from", stored, "--json")
    assert code == 0
    python = json.loads(out)["python"]
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    frame.to_pickle(tmp_path / "frame.pkl")
    script = "\n".join(
        ["import pandas", "df = pandas.read_pickle('frame.pkl')", *python["imports"], python["save"], python["read"]]
    )
    checked = f"{script}\nassert df.to_dict() == {frame.to_dict()!r}"
    done = subprocess.run([sys.executable, "-c", checked], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_stored_run_answers_by_weights_and_needs(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = asked(capsys, "--from", stored, "--prefer", "size=1")
    assert code == 0
    assert "recommended:" in out
    code, out = asked(capsys, "--from", stored, "--need", "append")
    assert code == 1
    assert "no measured variant satisfies the needs" in out
    assert "cannot: append" in out


def test_a_stored_run_explains_itself(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, short = asked(capsys, "--from", stored)
    assert code == 0
    assert "plain csv, compared with it: " in short
    assert f"recommend --from {stored} --explain" in " ".join(short.split())
    code, whole = asked(capsys, "--from", stored, "--explain", "--accept", "young")
    assert code == 0
    assert "is young: one implementation" in whole
    assert "all samples: " in whole


def test_a_busy_machine_is_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(datasets=("eq",), rounds=7)
    unsettled = tuple(changed(sample, unsettled=sample.failure is None) for sample in run.samples)
    code, out = asked(capsys, "--from", write_run(replace(run, samples=unsettled), tmp_path / "run"))
    assert code == 1
    assert "the machine was busy" in out
    assert "satisfies" not in out


def test_several_data_sets_in_a_run_need_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(make_run(datasets=("eq", "int"), rounds=5), tmp_path / "run")
    with pytest.raises(SystemExit) as ended:
        cli.main(["recommend", "--from", str(folder)])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "by --datasets" in err
    assert "eq: 1,000,000 rows" in err
    assert asked(capsys, "--from", folder, "--datasets", "^int$")[0] == 0


@pytest.mark.slow
def test_programs_measure_and_ask_what_they_measured(
    runs_at_rest: None, tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    measured = run(
        "tabular",
        rows=2_000,
        datasets=["^eq$"],
        formats="^(feather|pickle)",
        fidelity=False,
        quick=True,
        out=tmp_path / "run",
    )
    assert (measured.folder, measured.failed) == (tmp_path / "run", False)
    assert measured.run == read_run(tmp_path / "run")
    assert (tmp_path / "run" / "results-eq-plain.csv").exists()
    (command,) = measured.run.info.command
    assert command.startswith("run('tabular', formats='^(feather|pickle)', datasets=['^eq$'], rows=2000, quick=True,")
    found = measured.frame()
    assert set(found["operation"]) == {"save", "read"}
    assert {name.partition("[")[0] for name in found["variant"]} == {"feather", "pickle", "raw-io"}
    # If the machine is not idle, some cells have no counted round. The result does not include them.
    assert (found["wall_ns"].dropna() > 0).all()
    assert found["wall_ns"].isna().equals(found["rounds"] == 0)
    assert found.attrs["folder"] == str(tmp_path / "run")
    answer = recommend(stored=tmp_path / "run", weights={"read": 1, "size": 2})
    ranked = [each.candidate.variant for each in (*answer.found.ranked, *answer.found.not_accepted)]
    told = ranked + [variant for variant, _ in answer.found.dropped]
    assert {name.partition("[")[0] for name in told} == {"feather", "pickle"}
    assert answer.read.startswith("df = ") or not answer.found.ranked


WRONG = [
    ([], "No data were named"),
    (["--data", "x", "--from", "y"], "Omit one of the two"),
    (["--datasets", "eq", "--prefer", "speed=3"], "'speed' cannot be weighed"),
    (["--datasets", "eq", "--need", "magic"], "'magic' is not a known need"),
    (["--datasets", "eq", "--accept", "old"], "'old' is not one of 'established', 'young', 'experimental'"),
    (["--datasets", "eq", "--max-memory", "lots"], "Write e.g. 500M or 8G"),
    (["--datasets", "eq", "--bandwidth", "fast"], "Write bytes as in 200MB/s"),
    (["--datasets", "eq", "--reads-per-save", "0"], "reads-per-save"),
    (["--data", "/nosuch/file"], "--data must be an existing file or folder (got '/nosuch/file')"),
    (["--from", "/nosuch/run"], "no run.json"),
    (["--datasets", "nosuch"], "matches no data set"),
    (["--datasets", "eq", "--formats", "nosuch"], "--formats: 'nosuch' matches no variant"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_a_wrong_question_is_reported_in_two_lines(
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
