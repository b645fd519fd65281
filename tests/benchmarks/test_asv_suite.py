"""The classes that asv finds: made from the suites, cheap to find, and as strict as our own runner."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.errors import RefusedData
from bench_runner.errors import Failure, PlanError
from bench_runner.results.records import Sample
from bench_runner.run import in_process_cell
from bench_runner.run.in_process_cell import OPERATIONS_VARIABLE, ROWS_VARIABLE, Trial, cells
from bench_runner.run.probe_check import KnownAnswer
from bench_runner.suites import SUITES
from bench_runner.suites.rules import Storages
from bench_runner.worker import settle
from benchmarks.asv_results import name_by_versions
from benchmarks.asv_settings import write_settings
from benchmarks.asv_suite import identifier, suite_class
from tests.bench_runner.results.invented import make_sample

ROOT = Path(__file__).parents[2]
FEATHER = "feather[engine=pyarrow,codec=none]"
PICKLE = "pickle[engine=pandas]"


@pytest.fixture(scope="module")
def thousand_rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A thousand rows and a cache of this module's own; its plans are made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ROWS_VARIABLE, "1000")
        patch.setenv("FORMAT_BENCH_CACHE", str(tmp_path_factory.mktemp("asv-cache")))
        forget_plans()
        yield
    forget_plans()


@pytest.fixture
def small(thousand_rows: None, runs_at_rest: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thousand rows, and a current folder of the test's own."""
    (tmp_path / "asv").mkdir()
    monkeypatch.chdir(tmp_path / "asv")


def forget_plans() -> None:
    for cached in (in_process_cell._plan, in_process_cell.cells):
        cached.cache_clear()


@pytest.fixture
def other_operations(small: None) -> Iterator[None]:
    """For tests that name operations: their plans are their own."""
    forget_plans()
    yield
    forget_plans()


@pytest.mark.parametrize("name", SUITES)
def test_parameters_are_the_suites_own(name: str, small: None) -> None:
    made = suite_class(name)
    datasets, variants = made.params  # type: ignore[attr-defined]
    assert datasets == list(SUITES[name].datasets)
    rule = SUITES[name].variants
    named = set(rule.names) if isinstance(rule, Storages) else set()
    assert {variant.partition("[")[0] for variant in variants} >= named
    assert len(set(variants)) == len(variants)
    assert all(isinstance(text, str) for text in (*datasets, *variants))


def test_what_reads_everything_is_marked_in_asv_for_that_operation_alone(
    other_operations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OPERATIONS_VARIABLE, "project[columns=2]|read")
    made = suite_class("tabular")
    told = {name: getattr(made, f"time_{name}").params[1] for name in ("read", "project_columns_2")}
    assert told["read"] == made.params[1]  # type: ignore[attr-defined]
    assert [name.removesuffix(" read-all") for name in told["project_columns_2"]] == told["read"]
    marked = {name for name in told["project_columns_2"] if name.endswith(" read-all")}
    assert f"{PICKLE} read-all" in marked
    assert not any(name.startswith(("feather", "parquet", "lance")) for name in marked)
    memory = made.track_project_columns_2_peak_memory  # type: ignore[attr-defined]
    assert memory.params[1] == told["project_columns_2"]
    chain, _ = in_process_cell.Trial("tabular")._cell("eq", f"{PICKLE} read-all")
    assert chain.variant == PICKLE


def test_every_chain_of_a_run_is_a_cell(small: None) -> None:
    found = {(chain.dataset, chain.variant) for chain in cells("tabular").values()}
    assert {(chain.dataset, chain.variant) for chain in in_process_cell._plan("tabular").chains} <= found


def test_memory_and_size_carry_their_unit() -> None:
    made = suite_class("tabular")
    assert {getattr(made, name).unit for name in dir(made) if name.startswith("track_")} == {"bytes"}


def test_one_process_takes_one_sample() -> None:
    made = suite_class("tabular")
    names = ("repeat", "number", "warmup_time", "min_run_count")
    assert [getattr(made, name) for name in names] == [1, 1, 0, 1]


@pytest.mark.slow
def test_asv_finds_them_and_makes_no_data(tmp_path: Path) -> None:
    pytest.importorskip("asv")
    environment = {**os.environ, "FORMAT_BENCH_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "asv", "check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "cache").exists()


def left_there() -> set[str]:
    return {path.name.partition("-")[0] for path in Path.cwd().iterdir()}


def test_a_save_that_was_timed_is_verified(small: None) -> None:
    cell = Trial("tabular")
    cell.prepare("save", "eq", FEATHER)
    cell.run()
    cell.finish("eq", FEATHER)
    assert left_there() == {"control.json"}


def test_a_wrong_result_fails_the_benchmark(small: None) -> None:
    cell = Trial("tabular")
    cell.prepare("read", "eq", FEATHER)
    cell.run()
    cell._result = cell._result.iloc[::-1]
    with pytest.raises(RuntimeError, match="Mismatch"):
        cell.finish("eq", FEATHER)
    # asv would show the figures of the rounds after it.
    with pytest.raises(RuntimeError, match="failed in an earlier round: Mismatch"):
        cell.prepare("read", "eq", FEATHER)


def test_a_save_that_stored_something_else_fails_the_benchmark(small: None) -> None:
    cell = Trial("tabular")
    cell.prepare("save", "eq", FEATHER)
    assert cell._ready is not None
    held = cell._ready.held
    held.loc[0, held.select_dtypes("int64").columns[0]] += 1
    cell.run()
    with pytest.raises(RuntimeError, match="Mismatch"):
        cell.finish("eq", FEATHER)
    assert not list(Path.cwd().glob("save-*"))


def test_processes_of_a_cell_read_the_same_copy_and_the_next_cell_has_its_own(small: None) -> None:
    seen = []
    for variant in (FEATHER, PICKLE, FEATHER):
        cell = Trial("tabular")
        cell.prepare("read", "eq", variant)
        assert cell._ready is not None
        seen.append(cell._ready.location.stat().st_ino)
        cell.run()
        cell.finish("eq", variant)
    assert seen[0] == seen[2] != seen[1]
    assert left_there() == {"control.json", "copy"}

    # A read from the device gives no figure.
    cell.prepare("read", "eq", FEATHER)
    cell.run()
    cell._fetched_bytes -= 10**9
    with pytest.raises(RuntimeError, match="a warm read fetched 1,000,"):
        cell.finish("eq", FEATHER)
    cell.prepare("read", "eq", FEATHER)


def test_a_machine_that_is_not_at_rest_gives_no_figure(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "SLOW_FACTOR", 1.5)
    Path("control.json").write_text(json.dumps({"write_ns": 1, "allocate_ns": 1}))
    with pytest.raises(RuntimeError, match="not at rest"):
        Trial("tabular").prepare("save", "eq", FEATHER)


def test_a_cell_that_is_refused_is_not_available(small: None) -> None:
    with pytest.raises(NotImplementedError, match="nulls"):
        Trial("tabular").prepare("save", "eq", "hdf5-fixed[engine=pandas,nulls=numpy]")
    with pytest.raises(NotImplementedError, match="is not measured on"):
        Trial("tabular").prepare("save", "eq", "nosuch")


def test_our_worker_s_figures_are_taken_once(small: None) -> None:
    Path("probe.json").write_text("0")
    made = suite_class("tabular")()
    made.track_size.setup("eq", FEATHER)
    size = made.track_size("eq", FEATHER)
    assert size > 10_000
    (kept,) = Path.cwd().glob("figures-*.json")
    written = kept.stat().st_mtime_ns
    made.track_read_peak_memory.setup("eq", FEATHER)
    peak = made.track_read_peak_memory("eq", FEATHER)
    assert peak >= 0
    assert kept.stat().st_mtime_ns == written
    assert json.loads(kept.read_text())["save"]["size_bytes"] == size


def test_memory_is_the_median_of_three_executions(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter((9_000_000, 5_000_000, 7_000_000))

    def executed(*_: object, **__: object) -> list[Sample]:
        figures = {"peak_private_bytes": next(peaks)}
        failed = Failure(kind="crash", reason="it ended") if figures["peak_private_bytes"] == 5_000_000 else None
        read = make_sample(operation="read", figures={} if failed else figures, failure=failed)
        return [make_sample(operation="save", figures=figures), read]

    monkeypatch.setattr(in_process_cell, "execute", executed)
    chain, stored = Trial("tabular")._cell("eq", FEATHER)
    assert in_process_cell._executed(chain, stored) == {"save": {"peak_private_bytes": 7_000_000}}


def test_memory_that_the_probe_cannot_tell_is_not_shown(small: None) -> None:
    Path("probe.json").write_text("1000")
    cell = Trial("tabular")
    cell._figures = {"save": {"peak_private_bytes": 2999}, "read": {"peak_private_bytes": 3000}}
    assert math.isnan(cell.peak_memory("save"))
    assert cell.peak_memory("read") == 3000


def test_the_probe_is_asked_about_known_memory_once(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [[KnownAnswer("numpy", 100, 90, 0)]]
    monkeypatch.setattr(in_process_cell, "known_answers", lambda *_: answers.pop())
    assert [in_process_cell._probe_error_bytes() for _ in range(2)] == [10, 10]


def test_what_a_library_refuses_is_not_available_and_what_it_lacks_is_a_failure(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(error: Exception) -> None:
        def prepare(task: object) -> None:
            raise error

        monkeypatch.setattr(in_process_cell, "prepare", prepare)

    raising(RefusedData("no lists"))
    with pytest.raises(NotImplementedError, match="no lists"):
        Trial("tabular").prepare("save", "eq", FEATHER)
    raising(NotImplementedError("not yet"))
    with pytest.raises(RuntimeError, match="not yet"):
        Trial("tabular").prepare("save", "eq", FEATHER)


def test_a_folder_in_memory_is_refused(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process_cell.folders, "folder_facts", lambda folder: {"filesystem": "tmpfs"})
    with pytest.raises(RuntimeError, match="set TMPDIR"):
        Trial("tabular").make_data()


def test_a_number_of_rows_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROWS_VARIABLE, "many")
    with pytest.raises(ValueError, match="FORMAT_BENCH_ROWS=many"):
        in_process_cell.rows("tabular")


def test_asv_s_files_lie_where_they_are_asked_for_and_a_machine_stays_as_it_was_described(tmp_path: Path) -> None:
    pytest.importorskip("asv")
    place = tmp_path / 'a # & "b'
    place.mkdir()
    settings = json.loads(write_settings(place, "lab-1").read_text())
    assert (settings["results_dir"], settings["repo"]) == (str(place / "results" / "asv"), str(ROOT))
    assert Path(settings["benchmark_dir"], "tabular.py").is_file()
    machines = place / ".asv-machine.json"
    machines.write_text(machines.read_text().replace('"os": "Linux"', '"os": "older"'))
    write_settings(place, "lab-1")
    write_settings(place, "lab-2")
    known = json.loads(machines.read_text())
    assert (known["lab-1"]["os"], known["lab-2"]["os"]) == ("older", "Linux")
    assert known["lab-1"]["ram"].removesuffix(" GB").isdecimal()


def test_each_set_of_versions_has_its_own_results(tmp_path: Path) -> None:
    Results = pytest.importorskip("asv.results").Results  # noqa: N806
    for date, version in ((1, "1.0"), (2, "2.0"), (3, "2.0")):
        Results({"machine": "lab-1"}, {}, "a" * 40, date, "3.11", "existing-py_venv", {}).save(str(tmp_path))
        name_by_versions(tmp_path / "lab-1", "a" * 40, {"pandas": version})
    found = sorted((Results.load(str(path)) for path in (tmp_path / "lab-1").iterdir()), key=lambda each: each.date)
    assert [each.date for each in found] == [1, 3]
    assert [each._requirements for each in found] == [{"pandas": "1.0"}, {"pandas": "2.0"}]
    assert len({each.params["libraries"] for each in found}) == 2


def test_results_of_an_earlier_commit_do_not_get_the_versions_of_today(tmp_path: Path) -> None:
    Results = pytest.importorskip("asv.results").Results  # noqa: N806
    for commit in ("a" * 40, "b" * 40):
        Results({"machine": "lab-1"}, {}, commit, 1, "3.11", "existing-py_venv", {}).save(str(tmp_path))
    name_by_versions(tmp_path / "lab-1", "b" * 40, {"pandas": "2.0"})
    found = {
        each._commit_hash[0]: each._requirements for each in map(Results.load, map(str, tmp_path.glob("*/*.json")))
    }
    assert found == {"a": {}, "b": {"pandas": "2.0"}}


def test_benchmarks_that_were_not_measured_again_keep_their_results(tmp_path: Path) -> None:
    Results = pytest.importorskip("asv.results").Results  # noqa: N806
    for date, measured in ((1, {"tabular": 1.0, "image": 2.0}), (2, {"image": 3.0})):
        made = Results({"machine": "lab-1"}, {}, "a" * 40, date, "3.11", "existing-py_venv", {})
        made._results = {name: [value] for name, value in measured.items()}
        made._stats = dict.fromkeys(measured)
        made.save(str(tmp_path))
        name_by_versions(tmp_path / "lab-1", "a" * 40, {"pandas": "2.0"})
    (path,) = (tmp_path / "lab-1").iterdir()
    assert {name: Results.load(str(path))._results[name] for name in ("tabular", "image")} == {
        "tabular": [1.0],
        "image": [3.0],
    }


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("", ("save", "read")),
        ("read", ("save", "read")),
        ("project[columns=2]|read", ("save", "read", "project[columns=2]")),
    ],
)
def test_the_operations_of_a_history_are_chosen_as_those_of_a_run(
    asked: str, found: tuple[str, ...], other_operations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OPERATIONS_VARIABLE, asked)
    assert in_process_cell.operations("tabular") == found
    made = suite_class("tabular")
    assert {name for name in dir(made) if name.startswith("time_")} == {
        f"time_{identifier(operation)}" for operation in found
    }


def test_an_operation_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPERATIONS_VARIABLE, "raed")
    with pytest.raises(PlanError, match="did you mean 'read'"):
        in_process_cell.operations("tabular")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("take", r"use take\[handle=reopened\]"),
        ("append", "append changes its copy, and asv repeats calls"),
        ("stream-save", "stream-save changes its copy, and asv repeats calls"),
        ("stream-read", "timing pauses in stream-read"),
    ],
)
def test_an_operation_that_asv_cannot_clock_is_refused(asked: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPERATIONS_VARIABLE, asked)
    with pytest.raises(ValueError, match=words):
        in_process_cell.operations("tabular")
    monkeypatch.setenv(OPERATIONS_VARIABLE, "take[handle=reopened]")
    assert in_process_cell.operations("tabular") == ("save", "take[rows=100,handle=reopened]")


def test_an_operation_is_a_part_of_a_name_in_python() -> None:
    assert identifier("project[columns=4]") == "project_columns_4"
    assert f"time_{identifier('project[columns=4]')}".isidentifier()


def test_a_projection_is_timed_and_verified(other_operations: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPERATIONS_VARIABLE, "project[columns=2]")
    one = Trial("tabular")
    one.prepare("project[columns=2]", "eq", FEATHER)
    one.run()
    assert len(one._result.columns) == 2
    one.finish("eq", FEATHER)


def test_a_projection_of_tables_leaves_images_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """asv loads all suites at once."""
    monkeypatch.setenv(OPERATIONS_VARIABLE, "read|project")
    assert in_process_cell.operations("image") == SUITES["image"].operations
    assert in_process_cell.operations("tabular") == ("save", "read", "project[columns=4]")
