"""Training loops in reports: each row order is ranked separately, and the quality of the shuffle is next to
the speed."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from bench_runner.results.records import Run, Sample, changed
from reports.analysis.access.loaders import loaders_of
from reports.analysis.figures import Figures
from reports.analysis.sections import TITLES
from reports.analysis.tables import tables
from reports.site.pages import write_site
from reports.text.page import WIDTH
from tests.reports.factory import PROJECT_10, make_run
from tests.reports.pdf_text import drawn, section_pages
from tests.reports.terminal_text import shown

SHUFFLED, STORED = "batches[rows=64,order=shuffled]", "batches[rows=64,order=stored]"
ROWS = 1_000_000
TITLE = TITLES["loaders"]


def loop(sample: Sample, operation: str) -> Sample:
    """Turn the projection into a loop over all rows in batches of 64. The stored order is ten times as fast."""
    if not sample.figures:
        return changed(sample, operation=operation)
    wall_ns = sample.figures["wall_ns"] // (10_000 if operation == SHUFFLED else 100_000)
    epoch_ns = wall_ns * ROWS // 64
    figures = {
        "wall_ns": wall_ns,
        "cpu_ns": wall_ns,
        "calls_ns": 3 * epoch_ns,
        "repetitions": 2 * ROWS // 64,
        "first_batch_ns": 7_000_000,
        "gap_p99_ns": 3 * wall_ns,
        "epoch_1_ns": 2 * epoch_ns,
        "epoch_2_ns": epoch_ns,
        "epoch_rows": ROWS // 4 if sample.variant.startswith("parquet") else ROWS,
        "locality_permille": 1_002 if operation == SHUFFLED else 7_812_345,
        "parts_permille": 998 if operation == SHUFFLED else 64_000,
    }
    return changed(sample, operation=operation, figures=figures)


def run_of() -> Run:
    made = make_run(datasets=("eq",), tracks=("plain",), rounds=5, rows=ROWS, seed=1, project=True)
    # The run has few variants, so that its site is made quickly.
    kept = [sample for sample in made.samples if sample.variant.startswith(("raw-io", "parquet", "lance", "pickle"))]
    made = replace(made, samples=tuple(kept))
    projections = [sample for sample in made.samples if sample.operation == PROJECT_10]
    others = tuple(sample for sample in made.samples if sample.operation != PROJECT_10)
    loops = tuple(loop(sample, operation) for sample in projections for operation in (STORED, SHUFFLED))
    return replace(made, samples=(*others, *loops))


def found() -> list[Figures]:
    run = run_of()
    (table,) = tables(run)
    return list(loaders_of(run, table))


def test_the_most_shuffled_order_comes_first_however_fast_others_are() -> None:
    assert [order.title for order in found()] == [SHUFFLED, STORED]


def test_loaders_are_ranked_among_their_order_alone() -> None:
    for order in found():
        first, texts = order.lines[0]
        assert first in order.leading
        assert texts[0].endswith("*")
        whole = [place for place, (_, texts) in enumerate(order.lines) if "†" in texts[0]]
        assert whole
        # Fallbacks that read everything follow all ranked rows.
        assert min(whole) > max(place for place, (label, _) in enumerate(order.lines) if label in order.leading)


def test_speed_is_shown_with_the_quality_of_the_shuffle() -> None:
    shuffled, stored = found()
    for label, texts in shuffled.lines:
        told = {head.replace("\n", " "): text for head, text in zip(shuffled.headers, texts, strict=True)}
        assert (told["locality"], told["parts"], told["first batch ms"]) == ("1.00", "0.998", "7.00")
        assert told["rows read"] == ("25%" if label.startswith("parquet") else "all")
        first, second = (float(told[name].replace(",", "")) for name in ("epoch 1", "epoch 2"))
        assert 1.9 < second / first < 2.1
        both = float(told["rows/s"].rstrip("*=†").replace(",", ""))
        assert 2 / both == pytest.approx(1 / first + 1 / second, rel=0.1)
    assert {texts[6] for _, texts in stored.lines} == {"7,812"}


def test_the_terminal_shows_them_within_its_width() -> None:
    text = shown(run_of())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert f"eq: {TITLE}" in text
    assert f"\n{SHUFFLED}\n" in text
    assert "Loaders of different orders are never ranked together" in " ".join(text.split())


def test_pdf_and_site_have_them_too(tmp_path: Path) -> None:
    run = run_of()
    written = drawn(section_pages(run, "loaders"))
    assert "first batch" in written
    assert written.index(SHUFFLED) < written.index(STORED)
    write_site([run], tmp_path / "site")
    page = next(path for path in (tmp_path / "site").glob("*.html") if TITLE in path.read_text().lower())
    assert found()[0].lines[0][1][0] in unescape(page.read_text())


def test_a_run_without_loops_has_none() -> None:
    assert "locality" not in shown(make_run(datasets=("eq",), tracks=("plain",)))
