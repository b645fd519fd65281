"""Document stores in reports: documents and bytes per second, merges, and an index compared with a scan."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

import msgspec
import pytest

from bench_runner.results.records import Run, Sample, changed
from reports.analysis.documents.stores import documents_of, has_documents
from reports.analysis.figures import Figures
from reports.analysis.tables import tables
from reports.site.pages import write_site
from tests.reports.factory import PROJECT_10, make_run
from tests.reports.pdf_text import drawn, section_pages
from tests.reports.terminal_text import shown

ROWS, JSON_BYTES = 10_000, 27_000_000
SCAN, INDEX = (f"range[selectivity=0.001,paths=1,by={way}]" for way in ("scan", "index"))
INGEST = "ingest[updates=0.5,indexes=2]"
TITLE = "documents: ingestion, merges, indexes"


def of_documents(sample: Sample) -> list[Sample]:
    """Turn a table's sample into a store's sample. Merges take a fifth of the save's time, an index a tenth of a
    scan's."""
    sample = changed(sample, conditions=msgspec.structs.replace(sample.conditions, target="documents"))
    figures = sample.figures
    if not figures:
        return [sample]
    wall_ns = figures["wall_ns"]
    if sample.operation == "save":
        taken = {**figures, "accepted_ns": wall_ns * 4 // 5, "input_bytes": JSON_BYTES}
        updated = {"wall_ns": 2 * wall_ns, "accepted_ns": wall_ns, "input_bytes": 2 * JSON_BYTES, "growth_bytes": 5}
        return [changed(sample, figures=taken), changed(sample, operation=INGEST, figures={**figures, **updated})]
    if sample.operation == PROJECT_10:
        quick = {**figures, "wall_ns": wall_ns // 10}
        return [changed(sample, operation=SCAN), changed(sample, operation=INDEX, figures=quick)]
    return [sample]


@pytest.fixture(scope="module")
def run() -> Run:
    made = make_run(datasets=("eq",), tracks=("plain",), rounds=5, rows=ROWS, seed=1, project=True)
    kept = [sample for sample in made.samples if sample.variant.startswith(("raw-io", "parquet", "lance", "pickle"))]
    return replace(made, samples=tuple(each for sample in kept for each in of_documents(sample)))


def found(run: Run) -> list[Figures]:
    (table,) = tables(run)
    return list(documents_of(run, table))


def numbers(texts: tuple[str, ...]) -> list[float]:
    return [float(text.rstrip("*=†").replace(",", "")) for text in texts]


def test_rates_are_of_documents_and_json_over_the_time_with_its_merges(run: Run) -> None:
    save, ingest, _ = found(run)
    (table,) = tables(run)
    for label, texts in save.lines:
        (row,) = (row for row in table.rows if row.label == label)
        wall_s = row.cells["save"].figures["wall_ns"].median / 1e9
        documents, rate, before, with_sync, _ = numbers(texts)
        assert documents == pytest.approx(ROWS / wall_s, rel=0.01)
        assert rate == pytest.approx(JSON_BYTES / 1e6 / wall_s, rel=0.01)
        assert before == pytest.approx(rate * 5 / 4, rel=0.02)
        assert with_sync < rate * 1.001
    rates = [numbers(texts)[1] for _, texts in save.lines]
    assert rates == sorted(rates, reverse=True)
    # The ingest writes twice the bytes in twice the time. Merges take half of this time.
    assert numbers(ingest.lines[0][1])[1] == pytest.approx(rates[0], rel=0.02)
    assert numbers(ingest.lines[0][1])[2] == pytest.approx(2 * rates[0], rel=0.02)


def test_a_save_whose_time_did_not_count_has_no_rate(run: Run) -> None:
    busy = tuple(changed(each, unsettled=each.variant.startswith("pickle")) for each in run.samples)
    labels = [label for label, _ in found(replace(run, samples=busy))[0].lines]
    assert labels
    assert labels == [label for label, _ in found(run)[0].lines if not label.startswith("pickle")]


def test_an_index_is_next_to_the_scan_of_the_same_share(run: Run) -> None:
    ranges = found(run)[2]
    assert ranges.headers == ("scan 0.1 %", "index 0.1 %")
    for label, texts in ranges.lines:
        assert label.endswith(", 1 field")
        scan, index = numbers(texts)
        assert index == pytest.approx(scan / 10, rel=0.05)


def test_without_an_index_there_are_no_ranges_and_tables_have_no_documents(run: Run) -> None:
    without = replace(run, samples=tuple(sample for sample in run.samples if sample.operation != INDEX))
    assert len(found(without)) == 2
    (table,) = tables(make_run(datasets=("eq",), tracks=("plain",), rounds=5, rows=ROWS, seed=1))
    assert not has_documents(table)


def test_every_output_shows_them(run: Run, tmp_path: Path) -> None:
    rate = found(run)[0].lines[0][1][0]
    text = shown(run)
    assert TITLE in text
    assert rate in text
    assert f"{ROWS:,} documents" in text
    assert rate in drawn(section_pages(run, "documents"))
    write_site([run], tmp_path / "site")
    assert any(rate in unescape(page.read_text()) for page in (tmp_path / "site").rglob("*.html"))
