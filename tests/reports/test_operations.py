"""Every report shows a projection. It is marked and unranked if the variant reads everything."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pypdf
import pytest

from bench_runner.results.records import Failure, Run, Sample, changed, read_run
from reports.analysis.cold_start import cold_starts
from reports.analysis.compare import compare
from reports.analysis.frame import frame
from reports.analysis.recommendation.candidates import summary_of
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.recommend import weighed
from reports.pdf.report import write_pdf
from reports.site.pages import write_site
from reports.sources.reproduction import reproduce
from reports.text import comparison
from reports.text.page import WIDTH
from reports.text.thesis_csv import HEADER, OPERATIONS_HEADER, write_csv
from tests.reports.factory import PROJECT_10, make_run, of_few, with_info, write_run
from tests.reports.terminal_text import shown

PARQUET, PICKLE = "parquet[engine=pyarrow,codec=none]", "pickle[engine=pandas]"


def run_of(seed: int = 1, change: Callable[[Sample], Sample] = lambda sample: sample) -> Run:
    made = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=5, seed=seed, project=True)
    return replace(made, samples=tuple(change(sample) for sample in made.samples))


def without_save(kind: str = "") -> Run:
    """Return a run of only `read` and `project`. With a `kind`, the save exists but failed, and there is only one
    table."""
    run = replace(of_few(run_of()), fidelity=())
    if kind:
        run = replace(run, samples=tuple(sample for sample in run.samples if sample.dataset == "eq"))
    failure = Failure(kind=kind or "error", reason="no space")
    samples = (
        changed(sample, failure=failure, figures={}, codec=None) if sample.operation == "save" else sample
        for sample in run.samples
        if kind or sample.operation != "save"
    )
    return replace(run, samples=tuple(samples))


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_the_terminal_has_a_grid_of_further_operations() -> None:
    text = shown(run_of())
    assert max(map(len, text.splitlines())) <= WIDTH
    grid = text.partition("eq: further operations")[2]
    assert "project 10" in grid
    assert "†" in line_of(grid, "pickle")
    assert "†" not in line_of(grid, "parquet")
    assert "*" in line_of(grid, "feather ")
    assert "*" not in line_of(grid, "pickle")
    assert "orc" not in grid.partition("† read-all")[0], "what was not tried has no row"
    assert " ".join(grid.split()).count("not ranked") >= 1
    assert "project 10 columns" not in shown(make_run(datasets=("eq",)))


def test_many_operations_share_grids_as_far_as_the_page_has_room() -> None:
    run = run_of()
    more = [
        changed(sample, operation=f"project[columns={number}]")
        for sample in run.samples
        for number in range(20, 25)
        if sample.operation == PROJECT_10
    ]
    text = shown(replace(run, samples=(*run.samples, *more)))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" not in text


def test_the_thesis_csv_keeps_its_shape_and_projections_have_a_separate_file(tmp_path: Path) -> None:
    names = [path.name for path in write_csv(run_of(), tmp_path)]
    assert sorted(names) == [
        *("operations-core-plain.csv", "operations-eq-plain.csv", "results-core-plain.csv", "results-eq-plain.csv")
    ]
    thesis = list(csv.reader((tmp_path / "results-eq-plain.csv").open(newline="")))
    assert tuple(thesis[0]) == HEADER
    lines = list(csv.reader((tmp_path / "operations-eq-plain.csv").open(newline="")))
    assert tuple(lines[0]) == OPERATIONS_HEADER
    by_variant = {line[0]: line[1:] for line in lines[1:]}
    assert by_variant[PARQUET][0] == PROJECT_10
    assert 0.005 < float(by_variant[PARQUET][1]) < 0.05
    assert [by_variant[PARQUET][3], by_variant[PICKLE][3]] == ["", "read-all"]


def test_a_cold_start_has_the_first_call_of_each_operation() -> None:
    times, memory = cold_starts(run_of())
    assert times.headers == ("import\nms", "first save\nms", "first read\nms", "first project 10 columns\nms")
    assert memory.headers == tuple(header.replace("\nms", "\nMB") for header in times.headers)
    by_variant = dict(zip(times.variants, (texts for _, texts in times.lines), strict=True))
    assert by_variant[PARQUET][3] != "-"
    assert by_variant["orc[engine=pyarrow,codec=none]"][3] == "-"


def test_a_slower_projection_is_found_and_named() -> None:
    def slower(sample: Sample) -> Sample:
        if (sample.operation, sample.variant, sample.dataset) != (PROJECT_10, PARQUET, "eq"):
            return sample
        return changed(sample, figures={**sample.figures, "wall_ns": sample.figures["wall_ns"] * 3})

    found = compare(run_of(1), run_of(2, slower))
    (change,) = [each for each in found.regressions if each.figure == "wall_ns"]
    assert change.cell.operation == PROJECT_10
    assert f"| tabular/{PROJECT_10}/eq/{PARQUET} | time |" in comparison.markdown(found)
    assert "noise of project 10 columns times" in comparison.markdown(found)
    assert {drift["operation"] for drift in json.loads(comparison.as_json(found))["drifts"]} == {
        *("save", "read", PROJECT_10)
    }


def test_cells_of_only_one_run_are_named_with_their_operations() -> None:
    found = compare(make_run(datasets=("eq", "core"), tracks=("plain",), rounds=5), run_of())
    assert f"({PROJECT_10})" in comparison.markdown(found).partition("only in the second run: ")[2]


def test_a_frame_has_projections_and_their_fallbacks() -> None:
    found = frame(run_of())
    projections = found[found["operation"] == PROJECT_10].set_index(["variant", "dataset"])
    assert projections.loc[(PICKLE, "eq"), "fallback"] == "read-all"
    assert projections.loc[(PARQUET, "eq"), "fallback"] == ""


def test_unless_more_is_asked_recommendations_and_the_thesis_are_about_save_and_read_alone() -> None:
    plain = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=5)
    (candidates, *_) = summary_of(run_of()).questions.values()
    assert all(set(weighed(each, Preferences())) == {"read", "save", "size"} for each in candidates if each.rounds)
    assert {item.column.operation for item in reproduce(run_of()).comparisons} == {"save", "read"}
    assert len(reproduce(run_of()).comparisons) == len(reproduce(plain).comparisons)


def test_the_site_shows_projections_in_charts_maps_and_frontiers(tmp_path: Path) -> None:
    run = read_run(write_run(with_info(run_of(), id="run-1"), tmp_path / "run-1"))
    write_csv(run, run.folder)
    write_site([run], tmp_path / "site")
    page = (tmp_path / "site" / "suite-tabular.html").read_text()
    text = unescape(page)
    for title in ("project 10 columns time", "project 10 columns peak memory"):
        assert text.count(f"{title} <span") == 2
        assert f'<th scope="col">{title}</th>' in text
        assert f'<th scope="col">{title}</th>' in (tmp_path / "site" / "index.html").read_text()
    data = json.loads(page.partition('id="page-data">')[2].partition("</script>")[0])
    (section,) = [each for each in data["sections"] if each["id"] == "run-1-eq-plain"]
    scatters = {chart["id"]: chart for chart in section["charts"]["scatters"]}
    assert list(scatters) == [
        *("run-1-eq-plain-scatter-read-wall-ns", "run-1-eq-plain-scatter-project-columns-10-wall-ns"),
        "run-1-eq-plain-scatter-save-wall-ns",
    ]
    drawn = {row["label"] for row in scatters["run-1-eq-plain-scatter-project-columns-10-wall-ns"]["rows"]}
    assert drawn == {"parquet", "feather", "lance", "csv"}
    (bars,) = [chart for chart in section["charts"]["bars"] if chart["metric"] == "project 10 columns time"]
    told = {row["label"]: (row["told"][-1], row["band"]) for row in bars["rows"]}
    assert told["pickle"] == ("†", "apart")
    assert told["feather"][0] == "*"
    assert "orc" not in told
    assert 'id="project-columns-10-parquet' in (tmp_path / "site" / "samples" / "run-1-eq-plain.html").read_text()
    assert "† read-all" in (tmp_path / "site" / "index.html").read_text()
    assert (tmp_path / "site" / "data" / "run-1" / "operations-eq-plain.csv").exists()


@pytest.mark.slow
def test_the_pdf_has_a_page_of_further_operations(tmp_path: Path) -> None:
    path = write_pdf(replace(of_few(run_of()), fidelity=()), tmp_path / "report.pdf")
    pages = [page.extract_text() for page in pypdf.PdfReader(path).pages]
    (first, _) = [page for page in pages if "further operations" in page]
    assert "project 10 columns time (ms" in first
    assert "†" in first
    assert "reads all, then selects" in first
    (cold,) = [page for page in pages if "cold start" in page]
    assert "import ms" in cold


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "error", "disk"])
def test_every_report_copes_without_a_save(kind: str, tmp_path: Path) -> None:
    run = without_save(kind)
    text = shown(run)
    assert "project 10" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    write_csv(run, tmp_path)
    write_pdf(run, tmp_path / "report.pdf")
    write_site([run], tmp_path / "site")
    assert reproduce(run).comparisons
    assert compare(run, run).changes
    assert list(cold_starts(run))
    assert all(not each.rounds for candidates in summary_of(run).questions.values() for each in candidates)


def test_a_run_of_projections_alone_is_shown_by_them(tmp_path: Path) -> None:
    run = run_of()
    alone = replace(run, samples=tuple(sample for sample in run.samples if sample.operation == PROJECT_10))
    text = shown(alone)
    assert "further operations" not in text
    assert "by project 10 columns time" in text
    assert line_of(text, "feather ").count("*") == 2
    write_site([alone], tmp_path / "site")
