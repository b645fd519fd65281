"""Every output shows opening, first call, later calls and rate of kept handles. Latency and rate are not mixed up."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

from bench_runner.results.records import Run, Sample, changed
from reports.analysis.access.handles import handles_of, has_handles
from reports.analysis.tables import tables
from reports.site.pages import write_site
from tests.reports.factory import PROJECT_10, make_run
from tests.reports.pdf_text import section_pages, written_on
from tests.reports.terminal_text import shown

STREAMS, KEPT = "take[rows=10,handle=kept,streams=16]", "project[columns=10,handle=kept]"
CALL_NS, LATENCY_NS, P90_NS, OPEN_NS, FIRST_NS = 2_000_000, 31_000_000, 47_000_000, 5_300_000, 8_900_000


def of_streams(sample: Sample) -> Sample:
    times = {"wall_ns": CALL_NS, "latency_ns": LATENCY_NS, "p90_ns": P90_NS, "open_ns": OPEN_NS, "first_ns": FIRST_NS}
    return changed(sample, operation=STREAMS, figures={**sample.figures, **times, "empty_ns": 1_000})


def of_projections(sample: Sample) -> Sample:
    times = {"open_ns": OPEN_NS, "first_ns": FIRST_NS, "wall_ns": 900, "p90_ns": 1_000, "empty_ns": 100}
    return changed(sample, operation=KEPT, figures={**sample.figures, **times})


def run_of_handles() -> Run:
    made = make_run(datasets=("eq",), tracks=("plain",), rounds=1, seed=1, project=True)
    projected = [sample for sample in made.samples if sample.operation == PROJECT_10 and sample.figures]
    more = [of(sample) for of in (of_streams, of_projections) for sample in projected]
    return replace(made, samples=(*made.samples, *more))


def test_latency_and_rate_of_streams_are_two_figures() -> None:
    run = run_of_handles()
    (table,) = tables(run)
    streams, projections = handles_of(run, table)
    assert streams.headers == ("open\nms", "first\nms", "latency\nms", "90 % under\nms", "rows/s")
    # All streams together take 2 ms for 10 rows, which are 5,000 rows per second, although each call takes 31 ms.
    told = {tuple(text.rstrip("†") for text in texts) for _, texts in streams.lines}
    assert told == {("5.30", "8.90", "31.0", "47.0", "5,000")}
    assert projections.headers[2:] == ("call\nms", "90 % under\nms", "calls/s")


def test_times_too_short_for_the_clock_have_no_rate() -> None:
    run = run_of_handles()
    (table,) = tables(run)
    _, projections = handles_of(run, table)
    assert {texts[2].rstrip("†‡") for _, texts in projections.lines} == {"<0.001"}
    assert {texts[4] for _, texts in projections.lines} == {"-"}


def test_without_kept_handles_there_is_no_such_section() -> None:
    (table,) = tables(make_run(datasets=("eq",), tracks=("plain",), rounds=1, project=True))
    assert not has_handles(table)


def test_every_output_shows_them(tmp_path: Path) -> None:
    run = run_of_handles()
    text = shown(run)
    pages = written_on(section_pages(run, "handles"))
    write_site([run], tmp_path / "site")
    site = unescape("".join(path.read_text() for path in (tmp_path / "site").glob("*.html")))
    for output in (text, pages, site):
        assert "pen copies" in output
        assert "5,000" in output
        assert "31.0" in output
