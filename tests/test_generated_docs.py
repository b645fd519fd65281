"""What the pages take from the code is what the code says now."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results.records import Run
from reports.analysis.columns import READ_TIME
from tests import access_table, findings_table, grids_table, reference_tables
from tests.generated_docs import COMMAND, PAGES, ROOT, renewed
from tests.reports.factory import make_run, with_info
from tests.reports.test_loaders import run_of as of_loaders
from tests.reports.test_roofline import run_of as of_the_device


@pytest.mark.parametrize("name", PAGES)
def test_what_is_generated_is_up_to_date(name: str) -> None:
    page = (ROOT / name).read_text()
    assert "<!-- generated: " in page
    if page != renewed(page):
        pytest.fail(f"{name} says otherwise than the code; renew it: {COMMAND}", pytrace=False)


def run_of(suite: str, cpu: str, rounds: int = 5) -> Run:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=rounds, folder=Path(suite))
    return with_info(run, suites={suite: "Which?"}, machine={**run.info.shape()["machine"], "cpu": cpu})


def test_the_machines_of_the_reference_run_are_told_by_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_of("tabular", "A"), run_of("access", "B"), run_of("image", "A"), run_of("engines", "A")]
    monkeypatch.setattr(findings_table, "_runs", lambda: runs)
    assert findings_table.machines() == "`tabular`, `image` and `engines` on A; `access` on B"
    assert f"Ours are of {findings_table.machines()}." in access_table.beside("lance")


def test_every_page_that_shows_the_reference_run_names_its_processors() -> None:
    processors = {run.info.machine.cpu for run in reference_tables.runs()}
    assert all(processors)
    for name in ("README.md", "docs/findings.md", "docs/reproduction.md"):
        page = (ROOT / name).read_text()
        assert {cpu for cpu in processors if str(cpu) not in page} == set(), name
    (access,) = (run for run in reference_tables.runs() if "access" in run.info.suites)
    assert f"cache warm, on {access.info.machine.cpu}:" in (ROOT / "docs/access.md").read_text()


def test_who_comes_next_under_five_rounds_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    for rounds, marked in ((3, True), (6, False)):
        monkeypatch.setattr(findings_table, "_runs", lambda rounds=rounds: [run_of("tabular", "A", rounds)])
        line = next(line for line in findings_table.wins().splitlines() if line.startswith("| `eq`, "))
        assert ("? times" in line) is marked
        assert line.count("times (") == (0 if marked else 5)
        assert ("**" in line) is not marked


def test_a_grid_marks_the_fastest_and_what_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    for rounds, has_verdicts in ((3, False), (6, True)):
        monkeypatch.setattr(grids_table, "_runs", lambda rounds=rounds: [run_of("tabular", "A", rounds)])
        tables = grids_table.suite_tables("tabular")
        (found,) = (each for each in tables if each.dataset == "eq")
        told = grids_table.grid([grids_table.Head("read", found, READ_TIME)])
        (feather,) = (line for line in told.splitlines() if line.startswith("| feather"))
        assert sum("**" in line for line in told.splitlines() if line.startswith("|")) == has_verdicts
        assert ("**bold**: the best" in told) is has_verdicts
        assert ("±" in told) is has_verdicts
        assert "?" not in feather
        assert ("| feather (n=3) |" in feather) is not has_verdicts
        assert (re.search(r" -\d+\+\d+% ", feather) is not None) is not has_verdicts
        assert (" 6 rounds." in told) is has_verdicts
        assert "raw-io" not in told


def test_shares_of_the_device_are_told_of_cold_tables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids_table, "ENCODINGS", "tabular")
    for run, is_cold in ((of_the_device(), True), (of_the_device("warm"), False)):
        monkeypatch.setattr(grids_table, "_runs", lambda run=run: [run])
        told = grids_table.roofline()
        assert [len(grids_table.suite_tables("tabular", cold=cold)) for cold in (True, False)] == [is_cold, not is_cold]
        assert ("| parquet |" in told) is is_cold
        assert ("take[rows=100,handle=kept], eq |" in told) is is_cold
        assert ("| 4 KiB random 1/s | 10,000 | 40,000 |" in told) is is_cold
        assert ("`python main.py run " in told) is not is_cold


def test_loaders_are_told_with_how_much_of_an_epoch_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_loaders()
    few = replace(whole, samples=tuple(sample for sample in whole.samples if sample.round < 4))
    for run, has_verdicts in ((whole, True), (few, False)):
        monkeypatch.setattr(grids_table, "_runs", lambda run=run: [run])
        lines = grids_table.training("tabular").splitlines()
        assert ["±" in line for line in lines if line.startswith("| lance |")] == [has_verdicts]
        assert [" n=3" in line for line in lines if line.startswith("| lance |")] == [not has_verdicts]
        assert all((" of 25%" in line) == line.startswith("| parquet") for line in lines if "rows/s" not in line)


def test_a_suite_without_a_reference_run_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids_table, "_runs", list)
    near_storage = grids_table.near_storage("near-storage")
    for told in (grids_table.encodings("read"), grids_table.writing("events"), near_storage):
        assert "`python main.py run " in told
