"""What the pages take from the code and from the reference run is what these say now."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results.records import Run, changed
from docs._generate import findings, grids
from docs._generate.__main__ import COMMAND, PAGES, ROOT, renewed
from docs._generate.reference import Reference
from reports.analysis.columns import READ_TIME
from tests.reports.factory import make_run, with_info
from tests.reports.test_loaders import run_of as of_loaders

GENERATED = [name for name in PAGES if "<!-- generated: " in (ROOT / name).read_text()]


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_is_up_to_date(name: str) -> None:
    page = (ROOT / name).read_text()
    if page != renewed(page):
        pytest.fail(f"{name} says otherwise than the code; renew it: {COMMAND}", pytrace=False)


def test_pages_have_generated_parts() -> None:
    assert {"README.md", "docs/findings.md", "docs/suites.md", "docs/limits.md"} <= set(GENERATED)


def run_of(suite: str, cpu: str, rounds: int = 5) -> Run:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=rounds, folder=Path(suite))
    return with_info(run, suites={suite: "Which?"}, machine={**run.info.shape()["machine"], "cpu": cpu})


def test_the_machines_of_the_reference_run_are_named_with_their_runs() -> None:
    runs = [run_of("tabular", "A"), run_of("access", "B"), run_of("image", "A"), run_of("engines", "A")]
    assert Reference(tuple(runs)).machines == "`tabular`, `image` and `engines` on A; `access` on B"


def test_what_comes_next_under_five_rounds_is_marked() -> None:
    for rounds, marked in ((3, True), (6, False)):
        lines = findings.wins(Reference((run_of("tabular", "A", rounds),))).splitlines()
        line = next(line for line in lines if line.startswith("| `eq`, "))
        assert ("? times" in line) is marked
        # Sizes do not vary, so they have a verdict after any number of rounds.
        assert line.count("times (") == (1 if marked else 5)
        assert line.count("**") == (2 if marked else 10)


def test_a_grid_marks_the_fastest_and_what_has_no_verdict() -> None:
    for rounds, has_verdicts in ((3, False), (6, True)):
        ((run, found),) = (each for each in Reference((run_of("tabular", "A", rounds),)).tables)
        told = grids.grid([grids.Head("read", run, found, READ_TIME)])
        (feather,) = (line for line in told.splitlines() if line.startswith("| feather"))
        assert sum("**" in line for line in told.splitlines() if line.startswith("|")) == has_verdicts
        assert ("**bold**: best of" in told) is has_verdicts
        assert ("±" in told) is has_verdicts
        assert "?" not in feather
        assert ("n=3" in feather) is not has_verdicts
        assert (re.search(r" -\d+\+\d+% ", feather) is not None) is not has_verdicts
        assert "raw-io" not in told


def test_loaders_are_shown_with_how_much_of_an_epoch_they_read() -> None:
    whole = of_loaders()
    whole = replace(whole, samples=tuple(changed(sample, suite="training") for sample in whole.samples))
    few = replace(whole, samples=tuple(sample for sample in whole.samples if sample.round < 4))
    for run, has_verdicts in ((whole, True), (few, False)):
        lines = grids.training(Reference((run,))).splitlines()
        assert ["±" in line for line in lines if line.startswith("| lance |")] == [has_verdicts]
        assert [" n=3" in line for line in lines if line.startswith("| lance |")] == [not has_verdicts]
        assert all((" of 25%" in line) == line.startswith("| parquet") for line in lines if "rows/s" not in line)
