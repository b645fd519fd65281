"""The pages of a publication: content, links, and escaping of untrusted text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bench_runner.results.records import Failure, Run, changed
from reports.site.publication import write_site
from tests.reports.factory import history_of_a_cell, make_run, make_sample, of_few, with_info, write_run


class Links(HTMLParser):
    """Return every address that a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


def links(page: Path) -> list[str]:
    parser = Links()
    parser.feed(page.read_text())
    return [link for link in parser.found if not link.startswith("data:")]


def index_links(site: Path) -> list[str]:
    """Return the links of the index of stored runs, except the link back to the start."""
    return [link for link in links(site / "runs" / "index.html") if link != "../index.html"]


def make_history(folder: Path, values: Sequence[float | None] = (None, 0.25, None, None)) -> None:
    """Write pages as `asv publish` does, for two data sets and two variants."""
    benchmark = {
        "name": "tabular.Tabular.time_save",
        "unit": "seconds",
        "param_names": ["dataset", "variant"],
        "params": [["'eq'", "'core'"], ["'csv[engine=pandas]'", "'orc'"]],
    }
    other = {"name": "tabular.Tabular.other", "unit": "unit", "param_names": [], "params": []}
    place = folder / "graphs" / "machine-m" / f"{benchmark['name']}.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps([[7, list(values)]]))
    (folder / "index.html").write_text("graphs")
    (folder / "index.json").write_text(json.dumps({"benchmarks": {each["name"]: each for each in (benchmark, other)}}))


def run_of(day: int, **info: object) -> Run:
    told = {"id": f"run-{day}", "started": f"2026-03-{day:02d}T10:00:00+00:00", "suites": {"tabular": "Which?"}, **info}
    return of_few(make_run(datasets=("eq",), tracks=("plain",), rounds=5, seed=day, info=told))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("published")
    for day in (1, 2):
        folder = write_run(run_of(day), tmp_path / "runs" / f"run-{day}")
        (folder / "report.pdf").write_bytes(b"%PDF")
    (tmp_path / "site" / "asv").mkdir(parents=True)
    make_history(tmp_path / "site" / "asv")
    (tmp_path / "site" / "CNAME").write_text("bench.example")
    assert write_site(tmp_path / "runs", tmp_path / "site") == []
    return tmp_path / "site"


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    parts = {part for page in pages for part in page.parts}
    assert {"index.html", "suite-tabular.html", "run-1", "runs", "asv"} <= parts
    for page in pages:
        for link in links(page):
            target = page.parent / (link.partition("#")[0] or page.name)
            assert target.is_file(), f"{page.relative_to(site)} leads to {link}"


def test_the_index_leads_to_the_newest_run_first_and_to_the_history(site: Path) -> None:
    graph = "../asv/index.html#tabular.Tabular.time_save?x-axis=variant&p-dataset=%27eq%27"
    assert index_links(site) == ["../asv/index.html", graph, "run-2/index.html", "run-1/index.html"]
    assert "save time</a> (seconds)" in (site / "runs" / "index.html").read_text()


@pytest.mark.parametrize("damage", ["{", "[]", '{"benchmarks": {"a": {}}}', '{"benchmarks": 1}'])
def test_a_history_that_cannot_be_read_is_reported_and_hides_nothing_else(damage: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_history(site / "asv")
    (site / "asv" / "index.json").write_text(damage)
    (problem,) = write_site(tmp_path / "runs", site)
    assert problem.startswith("the history: ")
    assert index_links(site) == ["../asv/index.html"]


def test_a_history_without_a_figure_says_so(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_history(site / "asv", [None, None, None, None])
    assert write_site(tmp_path / "runs", site) == []
    assert "none yet" in (site / "runs" / "index.html").read_text()


def test_a_run_shows_its_tables_its_files_and_what_changed(site: Path) -> None:
    page = (site / "runs" / "run-2" / "index.html").read_text()
    assert "tabular: eq, 1,000,000 rows, track plain" in page
    assert "Since" in page
    assert {"report.pdf", "samples.jsonl", "run.json"} <= set(links(site / "runs" / "run-2" / "index.html"))
    assert "Since" not in (site / "runs" / "run-1" / "index.html").read_text()


def write_history(folder: Path, count: int = 12) -> None:
    for run in history_of_a_cell(count, slower_from=6):
        write_run(run, folder / run.info.id)


def test_the_index_lists_where_a_level_changed(tmp_path: Path) -> None:
    write_history(tmp_path / "runs")
    assert write_site(tmp_path / "runs", tmp_path / "site") == []
    page = (tmp_path / "site" / "runs" / "index.html").read_text()
    assert "Where a level changed" in page
    assert "at least 9 runs on one machine: 1." in page
    for text in ("tabular/read/eq/parquet", "<td>1.5", "commit-5 -&gt; commit-6", "pyarrow 26.0.0 -&gt; 26.1.0"):
        assert text in page
    assert "duckdb" not in page
    assert index_links(tmp_path / "site")[0] == "run-6/index.html"


def test_without_ruptures_the_index_says_how_to_get_the_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    write_history(tmp_path / "runs")
    assert write_site(tmp_path / "runs", tmp_path / "site") == []
    page = (tmp_path / "site" / "runs" / "index.html").read_text()
    assert "this needs ruptures; run pip install -e '.[history]'" in page
    assert "95 % interval" not in page


def test_with_few_runs_the_index_has_no_list_of_changes(site: Path) -> None:
    assert "Where a level changed" not in (site / "runs" / "index.html").read_text()


def test_other_files_stay(site: Path) -> None:
    assert (site / "CNAME").read_text() == "bench.example"


def test_without_a_history_nothing_leads_to_it(tmp_path: Path) -> None:
    write_site(tmp_path / "nothing", tmp_path / "site")
    assert index_links(tmp_path / "site") == []
    assert not [link for link in links(tmp_path / "site" / "index.html") if "asv" in link]
    assert "none yet" in (tmp_path / "site" / "runs" / "index.html").read_text()


def test_runs_of_other_machines_are_not_compared(tmp_path: Path) -> None:
    write_run(run_of(1), tmp_path / "runs" / "a")
    other = run_of(2)
    moved = replace(other, samples=tuple(changed(sample, machine="lab-2") for sample in other.samples))
    write_run(moved, tmp_path / "runs" / "b")
    write_site(tmp_path / "runs", tmp_path / "site")
    assert "Since" not in (tmp_path / "site" / "runs" / "b" / "index.html").read_text()


@pytest.mark.parametrize(("threads", "compared"), [("default", True), ("1", False)])
def test_threads_that_are_left_to_the_suite_are_the_same_question(threads: str, compared: bool, tmp_path: Path) -> None:
    """Older runs have the threads in their request. Newer runs may leave the threads to the suite."""
    write_run(run_of(1, request={"rows": None, "threads": "default"}), tmp_path / "runs" / "a")
    later = run_of(2, request={"rows": None, "threads": None})
    samples = tuple(changed(sample, conditions=changed(sample.conditions, threads=threads)) for sample in later.samples)
    write_run(replace(later, samples=samples), tmp_path / "runs" / "b")
    write_site(tmp_path / "runs", tmp_path / "site")
    assert ("Since" in (tmp_path / "site" / "runs" / "b" / "index.html").read_text()) == compared


def test_hostile_text_is_shown_as_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    samples = (make_sample(machine=evil, failure=Failure(kind="error", reason=evil), figures={}, fidelity=None),)
    run = replace(run_of(1, started=evil, commit=evil, suites={evil: evil}), samples=samples)
    write_run(run, tmp_path / "runs" / "a")
    write_site(tmp_path / "runs", tmp_path / "site")
    for page in (tmp_path / "site").rglob("*.html"):
        assert evil not in page.read_text()


def test_the_end_of_a_run_is_shown(tmp_path: Path) -> None:
    crashed = make_sample(failure=Failure(kind="crash", reason="signal 11"), figures={}, fidelity=None)
    samples = (crashed, make_sample(round=2))
    write_run(replace(run_of(1, partial=True), samples=samples), tmp_path / "runs" / "a")
    write_site(tmp_path / "runs", tmp_path / "site")
    assert "did not finish, 1 samples failed" in (tmp_path / "site" / "runs" / "index.html").read_text()


def test_a_folder_that_is_not_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs" / "odd").mkdir(parents=True)
    (tmp_path / "runs" / "odd" / "run.json").write_text("{")
    command = [sys.executable, "-m", "reports.site.publication", str(tmp_path / "runs"), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0
    assert "no page for odd" in done.stderr
    assert "cannot be read: odd" in (tmp_path / "site" / "runs" / "index.html").read_text()


def test_a_name_of_two_processors_is_two_machines(tmp_path: Path) -> None:
    for number, cpu in ((1, "one"), (2, "another"), (3, "one")):
        run = run_of(number)
        moved = with_info(run, machine={**run.info.shape()["machine"], "cpu": cpu})
        write_run(moved, tmp_path / "runs" / str(number))
    write_site(tmp_path / "runs", tmp_path / "site")
    front = (tmp_path / "site" / "index.html").read_text()
    assert ["run-1 (" in front, "run-2 (" in front, "run-3 (" in front] == [False, True, True]
    since = {number: (tmp_path / "site" / "runs" / number / "index.html").read_text() for number in "123"}
    assert 'Since <a href="../1/' in since["3"]
    assert "Since" not in since["2"]


def test_the_front_page_is_the_site_of_the_newest_run_of_the_same_suites_on_a_machine(site: Path) -> None:
    front = (site / "index.html").read_text()
    assert "run-2 (2026-03-02" in front
    assert "run-1 (2026-03-01" not in front
    assert {"runs/index.html", "asv/index.html", "suite-tabular.html"} <= set(links(site / "index.html"))
    assert "../index.html" in links(site / "runs" / "index.html")
    assert {"../../index.html", "../index.html"} <= set(links(site / "runs" / "run-1" / "index.html"))


def test_a_complete_run_is_preferred_to_a_newer_one_that_did_not_finish(tmp_path: Path) -> None:
    write_run(run_of(1), tmp_path / "runs" / "a")
    write_run(run_of(2, partial=True), tmp_path / "runs" / "b")
    write_site(tmp_path / "runs", tmp_path / "site")
    assert "run-1 (2026-03-01" in (tmp_path / "site" / "index.html").read_text()


def test_runs_of_other_machines_stay_on_the_front_page_and_other_requests_do_not(tmp_path: Path) -> None:
    write_run(run_of(1, request={"rows": 7}), tmp_path / "runs" / "a")
    write_run(run_of(2, request={"rows": 8}), tmp_path / "runs" / "b")
    other = run_of(3)
    moved = replace(other, samples=tuple(changed(sample, machine="lab-2") for sample in other.samples))
    write_run(moved, tmp_path / "runs" / "c")
    write_site(tmp_path / "runs", tmp_path / "site")
    front = (tmp_path / "site" / "index.html").read_text()
    assert ["run-1 (" in front, "run-2 (" in front, "run-3 (" in front] == [False, True, True]
    assert (tmp_path / "site" / "runs" / "a" / "index.html").exists()
