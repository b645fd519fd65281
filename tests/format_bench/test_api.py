"""The Python API: typed values in, a result out, and a wrong request is a ValueError of two lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest

import format_bench
from bench_runner.clock import now_ns
from bench_runner.request import Request
from bench_runner.results.records import RecordError, changed, read_run
from bench_runner.run.options import QUICK_BUDGET_S, Options
from format_bench import cli, compare, recommend, report, run
from format_bench.api import run as running
from format_bench.api.request import UNSAID, SharedFields, call_text, requested, result_folder, usual_values
from format_bench.commands.run import selected
from format_bench.errors import Interrupted, RequestError
from format_bench.options import read_options
from tests.reports.factory import make_run, write_run


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An invented run of one table."""
    return write_run(make_run(datasets=("eq",), tracks=("plain",), rounds=7), tmp_path_factory.mktemp("stored") / "run")


def test_api_names_are_imported_on_first_use() -> None:
    heavy = {"matplotlib", "scipy", "numpy", "pandas", "pyarrow", "rich"}
    code = f"import sys, format_bench.cli; sys.exit(str({heavy} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110)
    assert done.stderr.strip() == ""
    for name in format_bench.__all__:
        assert getattr(format_bench, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = format_bench.nothing


# --- wrong requests --------------------------------------------------------------------------------------------------

WRONG: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], str | None, str]] = [
    (run, (), {}, "suites", "tabular"),
    (run, ("tabluar",), {}, "suites", "did you mean 'tabular'"),
    (run, ("tabular",), {"rows": 0}, "rows", "of at least 1 (got 0)"),
    (run, ("tabular",), {"rows": "1000"}, "rows", "'1000'"),
    (run, ("tabular",), {"rounds": True}, "rounds", "True"),
    (run, ("tabular",), {"rounds": 3, "quick": True}, "rounds", "quick measures one round"),
    (run, ("tabular",), {"budget_s": "10m"}, "budget_s", "seconds above 0 (got '10m')"),
    (run, ("tabular",), {"budget_s": 0}, "budget_s", "(got 0)"),
    (run, ("tabular",), {"timeout_s": float("inf")}, "timeout_s", "inf"),
    (run, ("tabular",), {"seed": -1}, "seed", "of at least 0 (got -1)"),
    (run, ("tabular",), {"cache": "hot"}, "cache", "'warm' or 'cold' (got 'hot')"),
    (run, ("tabular",), {"threads": 1}, "threads", "(got 1)"),
    (run, ("tabular",), {"target": "polars"}, "target", "'polars'"),
    (run, ("tabular",), {"tracks": "fast"}, "tracks", "'fast'"),
    (run, ("tabular",), {"strings": "bytes"}, "strings", "'bytes'"),
    (run, ("tabular",), {"isolate": "thread"}, "isolate", "'thread'"),
    (run, ("tabular",), {"networks": "fast"}, "networks", "'1mbit' to '2500mbit' (got 'fast')"),
    (run, ("tabular",), {"formats": [1]}, "formats", "of str"),
    (run, ("compression",), {"codecs": "zstd"}, "codecs", "('zstd', 'gzip')"),
    (run, ("compression",), {"levels": "1,3"}, "levels", "'1,3'"),
    (run, ("tabular",), {"data": "/nosuch/file"}, "data", "/nosuch/file"),
    (run, ("tabular",), {"webface": "/nosuch/file"}, "webface", "/nosuch/file"),
    (run, ("tabular",), {"work_dirs": ["/nosuch"]}, "work_dirs", "folders that exist (got '/nosuch')"),
    (run, ("tabular",), {"work_dirs": "/tmp"}, "work_dirs", "work_dirs=('/tmp',)"),
    (run, ("tabular",), {"machine": "my machine"}, "machine", "'my machine'"),
    (run, ("tabular",), {"resume": True}, "out", "resume needs out"),
    (recommend, (), {}, "data", "stored"),
    (recommend, (), {"data": "x", "stored": "y"}, "stored", "data and stored cannot be combined"),
    (
        recommend,
        (),
        {"datasets": "eq", "cache": "cold", "bandwidth_bytes_per_s": 1e6},
        "bandwidth_bytes_per_s",
        "cold reads",
    ),
    (recommend, (), {"stored": "reference"}, "datasets", "a recommendation needs one of them"),
    (recommend, (), {"stored": "y", "cache": "cold"}, "cache", "stored"),
    (recommend, (), {"stored": "y", "work_dirs": ["z"]}, "work_dirs", "stored"),
    (recommend, (), {"stored": "y", "budget_s": 9.0}, "budget_s", "stored"),
    (recommend, (), {"datasets": "eq", "weights": "read=3"}, "weights", "a mapping, e.g. {'read': 3, 'take': 1}"),
    (recommend, (), {"datasets": "eq", "weights": {"speed": 3}}, "weights", "'speed'"),
    (recommend, (), {"datasets": "eq", "weights": {"read": -1}}, "weights", "of at least 0 (got -1)"),
    (recommend, (), {"datasets": "eq", "weights": {"read": 0}}, "weights", "at least one weight above 0"),
    (recommend, (), {"datasets": "eq", "uses": "read all"}, "uses", "a mapping"),
    (recommend, (), {"datasets": "eq", "uses": {}}, "uses", "no operation"),
    (recommend, (), {"datasets": "eq", "uses": {"read": 0}}, "uses", "above 0 (got 0)"),
    (recommend, (), {"datasets": "eq", "uses": {"sort": 1}}, "uses", "'sort'"),
    (recommend, (), {"datasets": "eq", "uses": {"read": 1}, "weights": {"read": 1}}, "weights", "the time of read"),
    (recommend, (), {"datasets": "eq", "weights": {"use": 1}}, "uses", "weights"),
    (recommend, (), {"datasets": "eq", "uses": {"take": 1}, "target": "pandas"}, "target", "Arrow tables only"),
    (
        *(recommend, (), {"datasets": "eq", "weights": {"take": 1}, "bandwidth_bytes_per_s": 1e6}),
        *("bandwidth_bytes_per_s", "cache='cold'"),
    ),
    (recommend, (), {"datasets": "eq", "uses": {"read": 1}, "reads_per_save": 2}, "reads_per_save", "uses"),
    (recommend, (), {"datasets": "eq", "weights": {"take[rows=0]": 1}}, "weights", "take[rows=0]"),
    (recommend, (), {"datasets": "eq", "needs": ["magic"]}, "needs", "'magic'"),
    (recommend, (), {"datasets": "eq", "max_memory_bytes": "8G"}, "max_memory_bytes", "'8G'"),
    (recommend, (), {"datasets": "eq", "bandwidth_bytes_per_s": 0}, "bandwidth_bytes_per_s", "(got 0)"),
    (recommend, (), {"datasets": "eq", "reads_per_save": -2}, "reads_per_save", "(got -2)"),
    (recommend, (), {"datasets": "eq", "accept": "old"}, "accept", "'established'"),
    (report, (), {"csv": True}, None, "csv, pdf or html"),
    (report, ("results/mine",), {}, None, "csv, pdf or html"),
]


@pytest.mark.parametrize(("verb", "positional", "keywords", "parameter", "said"), WRONG)
def test_a_wrong_request_is_a_value_error_that_names_the_parameter(
    verb: Callable[..., object],
    positional: tuple[Any, ...],
    keywords: dict[str, Any],
    parameter: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert issubclass(RequestError, ValueError)
    with pytest.raises(RequestError) as refused:
        verb(*positional, **keywords)
    assert refused.value.parameter == parameter
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) <= 2
    assert list(tmp_path.iterdir()) == [], "a refused request leaves nothing behind"


def test_an_unknown_keyword_is_a_type_error() -> None:
    for verb in (run, recommend):
        with pytest.raises(TypeError, match="colour"):
            verb(**{"colour": "red"})


def test_a_single_text_is_accepted_where_several_are() -> None:
    wanted = requested(formats="csv", formats_not="xml", datasets="eq", operations="save", tracks="plain")
    assert wanted == requested(
        formats=("csv",), formats_not=["xml"], datasets=["eq"], operations=["save"], tracks=("plain",)
    )


def test_a_result_folder_is_new_or_resumed(tmp_path: Path) -> None:
    def made() -> Path:
        return tmp_path / "made"

    assert result_folder(None, False, made) == made()
    assert result_folder(tmp_path / "new", False, made).is_dir()
    (tmp_path / "new" / "file").touch()
    assert result_folder(str(tmp_path / "new"), True, made) == tmp_path / "new"
    for taken in (tmp_path / "new", tmp_path / "new" / "file"):
        with pytest.raises(RequestError, match="a new or empty folder"):
            result_folder(taken, False, made)
    with pytest.raises(RequestError, match="cannot be created"):
        result_folder(tmp_path / "new" / "file" / "below", False, made)


def test_the_recorded_call_leaves_out_defaults() -> None:
    given = {"formats": "csv", "rows": 1000, "quick": True, "seed": None, "began_ns": 3, "watcher": object()}
    assert call_text(run, ("tabular",), given) == "run('tabular', formats='csv', rows=1000, quick=True)"


def test_the_command_line_has_an_option_for_each_keyword_with_the_same_default() -> None:
    for command, verb in ((cli.COMMANDS["run"], run), (cli.COMMANDS["recommend"], recommend)):
        program = click.Context(cli.cli)
        words = ["tabular"] if verb is run else []
        said = dict(command.make_context(command.name, words, parent=program, obj=[]).params)
        keywords = {name: value for name, value in usual_values(verb).items() if name not in UNSAID}
        if verb is run:
            assert (said.pop("list_only"), said.pop("suites")) == (False, ("tabular",))
            said |= {"fidelity": not said.pop("no_fidelity"), **selected(said)}
        else:
            assert (said.pop("as_json"), said.pop("explain")) == (False, False)
            said["options"] = read_options(said)
            taken = {*signature(verb).parameters, *get_type_hints(SharedFields)}
            keywords = {name: value for name, value in keywords.items() if name in taken}
        said["work_dirs"] = said["work_dirs"] or Request().work_dirs
        assert said == keywords


# --- run -------------------------------------------------------------------------------------------------------------


def fake_measure(monkeypatch: pytest.MonkeyPatch, then: Callable[[Path], Any]) -> list[Options]:
    asked: list[Options] = []

    def measure(plan: Any, request: Any, options: Options, folder: Path, *rest: object) -> Any:
        asked.append(options)
        return then(folder)

    monkeypatch.setattr(running, "measure", measure)
    return asked


def test_a_run_returns_its_samples_and_writes_its_files(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fake_measure(monkeypatch, lambda folder: (read_run(stored), True))
    before_ns = now_ns()
    measured = run("tabular", formats="csv", rows=1000, budget_s=60, fidelity=False, out=tmp_path / "out")
    (options,) = asked
    assert (options.budget_s, options.fidelity, options.rounds, options.timeout_s) == (60, False, None, 600)
    assert options.began_ns is not None
    assert before_ns <= options.began_ns <= now_ns()
    assert (measured.folder, measured.failed) == (tmp_path / "out", True)
    assert [path.name for path in measured.folder.iterdir()] == ["results-eq-plain.csv"]
    figures = measured.frame()
    assert figures.attrs["folder"] == str(tmp_path / "out")
    assert set(figures["operation"]) == {"save", "read"}
    assert "some cells failed" in repr(measured)
    assert len(repr(measured)) < 200
    assert "<table" in measured._repr_html_()


@pytest.mark.parametrize(
    ("how", "budget_s"), [({"quick": True}, QUICK_BUDGET_S), ({"quick": True, "budget_s": 9}, 9.0), ({}, None)]
)
def test_a_quick_run_has_its_own_budget(
    how: dict[str, Any], budget_s: float | None, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uncounted cells are measured again, which on a busy machine would take three times as long."""
    asked = fake_measure(monkeypatch, lambda folder: (read_run(stored), False))
    run("tabular", formats="csv", rows=1000, out=tmp_path / "out", **how)
    assert [options.budget_s for options in asked] == [budget_s]


def test_an_interrupted_run_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(begun: bool) -> Callable[[Path], Any]:
        def then(folder: Path) -> Any:
            if begun:
                (folder / "run.json").touch()
            raise KeyboardInterrupt

        return then

    for begun, kind in ((True, Interrupted), (False, KeyboardInterrupt)):
        fake_measure(monkeypatch, interrupted(begun))
        with pytest.raises(KeyboardInterrupt) as stopped:
            run("tabular", formats="csv", out=tmp_path / str(begun))
        assert type(stopped.value) is kind
    assert f"out={str(tmp_path / 'True')!r} and resume=True" in str(Interrupted(tmp_path / "True"))


# --- stored runs -----------------------------------------------------------------------------------------------------


def test_reports_are_made_from_a_folder_or_a_run(stored: Path, tmp_path: Path) -> None:
    folder = write_run(read_run(stored), tmp_path / "run")
    before = {path.name for path in folder.iterdir()}
    assert report(str(folder), csv=True) == (folder / "results-eq-plain.csv",)
    assert report(read_run(folder), pdf=True) == (folder / "report.pdf",)
    assert {path.name for path in folder.iterdir()} == before | {"results-eq-plain.csv", "report.pdf"}
    site = tmp_path / "site"
    assert report(folder, html=site) == (site / "index.html",)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").touch()
    with pytest.raises(RequestError, match="is not a site of Format Bench"):
        report(folder, html=tmp_path / "other")
    with pytest.raises(RecordError, match=r"no run\.json"):
        report(tmp_path, csv=True)


@pytest.mark.parametrize(("module", "named"), [("matplotlib", "matplotlib"), ("vl_convert", "vl-convert-python")])
def test_a_missing_library_of_the_pdf_is_reported_before_measuring(
    module: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == module else found(name, *more))
    with pytest.raises(RequestError, match=rf"needs {named}(.|\n)*pip install"):
        run("tabular", formats="csv", report=True)


def test_two_runs_are_compared(stored: Path, tmp_path: Path) -> None:
    assert not compare(stored, read_run(stored)).failed
    other = write_run(make_run(datasets=("str",), tracks=("plain",)), tmp_path / "other")
    with pytest.raises(RequestError, match="no measurement in common"):
        compare(stored, str(other))
    with pytest.raises(RequestError, match="at least 0"):
        compare(stored, stored, least_change=-0.1)


def test_a_stored_run_answers(stored: Path) -> None:
    found = read_run(stored)
    described = {name: changed(about, capabilities=("types",)) for name, about in found.info.variants.items()}
    asked = replace(found, info=changed(found.info, variants=described))
    answer = recommend(stored=asked, weights={"size": 1}, needs=("types",))
    assert answer.found.ranked
    assert answer.read.startswith("df = ")
    assert recommend(stored=asked, needs=("append",)).found.ranked == ()
