"""Pages of the PDF report, and the text that they must contain."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pypdf
import pytest

from bench_runner.results.information import information
from bench_runner.results.records import Run, RunInfo
from reports.analysis.bands import BANDS
from reports.pdf import report as pdf
from reports.pdf.page import A4_INCHES
from reports.pdf.report import ReportError, write_pdf
from tests.reports.factory import make_run, make_sample

pytestmark = pytest.mark.slow


def _pages(run: Run, folder: Path) -> list[str]:
    reader = pypdf.PdfReader(write_pdf(run, folder / "report.pdf"))
    for page in reader.pages:
        assert (float(page.mediabox.width), float(page.mediabox.height)) == pytest.approx(
            tuple(72 * inches for inches in A4_INCHES)
        )
    return [page.extract_text() for page in reader.pages]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the text of a report of two tables. It is made only once, because drawing takes a second or two."""
    return _pages(make_run(datasets=("eq", "core"), tracks=("plain",)), tmp_path_factory.mktemp("pdf"))


def test_a_page_for_each_table_then_means_fidelity_cold_start_and_remarks(pages: list[str]) -> None:
    assert len(pages) == 6
    table, _, means, fidelity, first, remarks = pages
    for title in ("save time", "read time", "size (MB)", "save peak memory", "read peak memory"):
        assert title in table
    for fact in ("lab-1", "AMD EPYC 7B13", "commit bd53157c0ffe", "seed 7", "pyarrow 26.0.0", "ext4", "2026-03-01"):
        assert fact in table, fact
    assert "json is lossy: float64 within 1e-10" in table
    assert "Counted rounds: 7" in table
    assert "timestamp[us,UTC]" in fidelity
    assert "target arrow" in fidelity
    assert "first read" in first
    assert "json [double_precision=15]" in first
    assert "governor" in remarks
    assert "docs/limits.md" in remarks
    assert "over eq, core" in means


def test_ties_reasons_and_limits_of_the_probe_are_printed(pages: list[str]) -> None:
    assert "*" in pages[0]
    assert "<4.50" in pages[0]
    assert "mismatch" in pages[1]
    assert "refused" in pages[1]


def test_under_five_rounds_the_page_claims_no_verdict(tmp_path: Path) -> None:
    samples = tuple(make_sample(round=number) for number in (1, 2))
    table = _pages(replace(make_run(datasets=()), samples=samples, fidelity=(), info=RunInfo()), tmp_path)[0]
    assert "no verdict" in table
    assert "or tied with it" not in table
    assert "*" not in table


def test_more_variants_than_a_page_holds_go_to_the_next(tmp_path: Path) -> None:
    samples = tuple(make_sample(variant=f"format{number}", round=1) for number in range(30))
    pages = _pages(replace(make_run(datasets=()), samples=samples, fidelity=(), info=RunInfo()), tmp_path)
    assert all(f"format{number}" in pages[0] + pages[1] for number in range(30))
    assert sum("tabular: eq" in page for page in pages) == 2


def test_an_empty_run_is_one_page_that_says_so(tmp_path: Path) -> None:
    empty = replace(make_run(datasets=()), fidelity=(), info=RunInfo())
    assert "nothing to show" in _pages(empty, tmp_path)[0]


def test_without_matplotlib_the_error_says_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_pdf", None)
    with pytest.raises(ReportError, match=r"pip install -e '\.\[pdf\]'"):
        write_pdf(make_run(datasets=()), tmp_path / "report.pdf")


def test_colours_differ_in_lightness_and_never_by_red_against_green() -> None:
    def channels(colour: str) -> tuple[int, int, int]:
        return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)

    blueness = [channels(colour)[2] - channels(colour)[0] for _, colour, _ in BANDS]
    assert blueness[:3] == sorted(blueness[:3], reverse=True) or min(blueness[:3]) > 40
    assert max(blueness[3:]) < -40


def test_a_report_that_fails_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(b"older")
    monkeypatch.setattr(pdf, "_save", lambda pages, figure: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        pdf.write_pdf(make_run(datasets=("eq",), rounds=1), path)
    assert [each.name for each in tmp_path.iterdir()] == ["report.pdf"]
    assert path.read_bytes() == b"older"


def test_a_sample_says_of_how_many_rows_it_is(tmp_path: Path) -> None:
    samples = tuple(make_sample(round=number) for number in range(1, 6))
    info = {"datasets": {"eq": {"title": "table of your own", "rows": 1_000_000, "input_rows": 12_345_678}}}
    table = _pages(replace(make_run(datasets=()), samples=samples, fidelity=(), info=information(info)), tmp_path)[0]
    assert "a sample of 1,000,000 of 12,345,678 rows (table of your own)" in " ".join(table.split())
