"""Shares of the device's limits, and bytes read per byte returned. All outputs show known texts for known figures."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from bench_runner.results.records import Conditions, Run, Sample, changed
from reports.analysis.access.roofline import has_roofline, roofline_of
from reports.analysis.figures import Figures
from reports.analysis.tables import tables
from reports.site.pages import write_site
from reports.text.page import WIDTH
from tests.reports.factory import PROJECT_10, make_run, with_info
from tests.reports.pdf_text import section_pages, written_on
from tests.reports.terminal_text import shown

TAKE, SCAN = "take[rows=100,handle=kept]", "scan[selectivity=0.01,kind=range]"
ZIPF, STREAMS = "take[rows=100,pattern=zipf,handle=kept]", "take[rows=100,handle=kept,streams=16]"
FIGURES = {
    "wall_ns": 100_000_000,
    "cpu_ns": 100_000_000,
    "asked_bytes": 50_000,
    "device_read_bytes": 100_000_000,
    "distinct_bytes": 80_000,
    "result_bytes": 40_000,
}
SHOWN = ("csv", "parquet", "pickle", "raw-io")
RAW_RESULT = 20_000
"""Raw I/O's result has the same values in half of the bytes."""


def line(kind: str, size_bytes: int, depth: int, per_second: float, *, at_least: bool = False) -> dict[str, Any]:
    return {
        "kind": kind,
        "size_bytes": size_bytes,
        "depth": depth,
        "reads": int(per_second),
        "wall_ns": 10**9,
        "at_least": at_least,
    }


def probe(when: str, factor: float = 1.0, **told: Any) -> dict[str, Any]:
    lines = [
        line("random", 4096, 1, 10_000 * factor),
        line("random", 4096, 16, 40_000 * factor),
        line("random", 65536, 1, 5_000 * factor),
        line("random", 65536, 16, 16_000 * factor),
        line("sequential", 1 << 20, 1, 1_000 * factor),
        line("sequential", 1 << 20, 16, 2_000 * factor),
        line("cached", 4096, 1, 1_000_000),
        line("cached", 65536, 1, 100_000),
        line("cached sequential", 1 << 20, 1, 8_000),
    ]
    return {
        "dataset": "eq",
        "work_dir": "default",
        "when": when,
        "copy_bytes": 60_000_000,
        "compiled": True,
        "guest": True,
        "lines": lines,
        **told,
    }


def run_of(cache: str = "cold (guest)", *probes: dict[str, Any], **figures: int) -> Run:
    """Return a run with takes and scans of one table. By default the device was probed before the rounds."""
    made = make_run(datasets=("eq",), tracks=("plain",), rounds=5, seed=1, project=True)
    samples: list[Sample] = []
    for sample in made.samples:
        if not sample.variant.startswith(SHOWN):
            continue
        conditions = changed(sample.conditions, cache=cache)
        samples.append(changed(sample, conditions=conditions))
        if sample.operation == PROJECT_10:
            result = RAW_RESULT if sample.variant == "raw-io" else FIGURES["result_bytes"]
            told = {**FIGURES, **figures, "result_bytes": result}
            samples += [
                changed(sample, operation=name, conditions=conditions, figures=told)
                for name in (TAKE, SCAN, ZIPF, STREAMS)
            ]
    variants = {name: dict(about) for name, about in made.info.shape()["variants"].items()}
    variants["csv[engine=pandas]"]["reads_unseen"] = True
    folders = {"default": {"path": "/tmp", "filesystem": "ext4", "device": "/dev/vda1", "read_ahead_kb": 8192}}
    run = with_info(made, variants=variants, rooflines=list(probes or [probe("before")]), work_dirs=folders)
    return replace(run, samples=tuple(samples))


def found(run: Run) -> dict[str, Figures]:
    (table,) = tables(run)
    return {figures.title: figures for figures in roofline_of(run, table)}


def text_of(figures: Figures, operation: str, variant: str) -> str:
    titles = {TAKE: TAKE, SCAN: SCAN, ZIPF: ZIPF, STREAMS: STREAMS}
    place = figures.headers.index(titles[operation])
    return next(texts[place] for label, texts in figures.lines if label.startswith(variant))


TMPFS = "tmpfs is memory, without a device to read from"
SHARE, READ, DEVICE = "share of the roofline", "bytes read for each byte of the result", "limits of the device"


@pytest.mark.rule(16)
def test_a_cold_take_is_a_share_of_single_reads_at_its_depth_and_at_best() -> None:
    """The take gets 1,000 rows per second. The device gives 10,000 single reads at this depth, and 40,000 at best."""
    shares = found(run_of())[SHARE]
    assert text_of(shares, TAKE, "parquet") == "10%/2.5%"
    assert text_of(shares, STREAMS, "parquet") == "2.5%/2.5%"
    assert ZIPF not in shares.headers


def test_large_rows_are_limited_by_bytes() -> None:
    """Rows of 200 bytes are limited by single reads. Rows of 1 MB, read one at a time, are limited by 1,048 MB/s in
    order."""
    run = run_of()
    large = [
        changed(each, figures={**each.figures, "result_bytes": 100 << 20}) if each.operation == TAKE else each
        for each in run.samples
    ]
    shares = found(replace(run, samples=tuple(large)))[SHARE]
    # 1,000 rows of 1 MiB per second are compared with 1,000 and 2,000 MiB.
    assert text_of(shares, TAKE, "parquet") == "100%/50%"


def test_a_cold_scan_is_a_share_of_reads_in_order_by_what_came_from_the_device() -> None:
    """The scan gets a gigabyte per second. The limits are 1.049 and 2.097."""
    assert text_of(found(run_of())[SHARE], SCAN, "parquet") == "95%/48%"


def test_warm_calls_are_shares_of_the_page_cache() -> None:
    shares = found(run_of("warm", asked_bytes=80_000_000))[SHARE]
    assert text_of(shares, TAKE, "parquet") == "0.1%"
    assert text_of(shares, SCAN, "parquet") == "9.5%"


def test_shares_are_upper_limits_if_the_device_may_be_faster() -> None:
    bound = probe("before")
    for each in bound["lines"]:
        each["at_least"] = (each["kind"], each["size_bytes"], each["depth"]) == ("random", 4096, 16)
    run = run_of("cold (guest)", bound)
    assert text_of(found(run)[SHARE], TAKE, "parquet") == "10%/≤2.5%"
    assert any("≥40,000" in texts for _, texts in found(run)[DEVICE].lines)


def test_the_highest_rate_is_the_limit_and_a_change_is_reported() -> None:
    run = run_of("cold (guest)", probe("before"), probe("after", 0.5))
    assert text_of(found(run)[SHARE], TAKE, "parquet") == "10%/2.5%"
    device = found(run)[DEVICE]
    assert ("4 KiB random 1/s", ("10,000 / 5,000", "40,000 / 20,000")) in device.lines
    notes = " ".join(device.notes)
    assert "the device served 50% fewer single reads after the rounds" in notes
    assert "guest: " in notes
    assert "8,192 KiB" in notes


def test_bytes_are_counted_for_each_byte_of_raw_io_s_result() -> None:
    """The three figures are requested bytes, bytes from the device, and distinct pages.

    Requested bytes are not shown if the counters do not see the reads.
    """
    read = found(run_of())[READ]
    assert text_of(read, TAKE, "parquet") == "2.50/5,000/4.00"
    assert text_of(read, TAKE, "csv") == "-/5,000/4.00"
    assert any(each.startswith("no figure for read calls") and each.endswith(": csv") for each in read.notes)
    assert text_of(read, TAKE, "pickle") == "2.50/5,000/4.00†"
    assert text_of(found(run_of("warm"))[READ], TAKE, "parquet") == "2.50"
    # Distinct pages are counted over all calls of a sample.
    assert text_of(found(run_of(repetitions=4))[READ], STREAMS, "parquet") == "2.50/5,000/1.00"


def test_without_limits_the_reason_and_the_bytes_are_shown() -> None:
    none = probe("before", lines=[], why_none=TMPFS)
    figures = found(run_of("warm", none))
    assert SHARE not in figures
    assert READ in figures
    (note,) = figures[DEVICE].notes
    assert note.endswith(f"before the rounds: {TMPFS}")
    elsewhere = run_of("warm", probe("before", dataset="another"))
    assert list(found(elsewhere)) == [READ]


def test_a_table_without_takes_and_scans_has_no_such_section() -> None:
    (table,) = tables(make_run(datasets=("eq",), tracks=("plain",), project=True))
    assert not has_roofline(table)


@pytest.mark.parametrize("why", ["", TMPFS])
def test_every_output_shows_it(tmp_path: Path, why: str) -> None:
    probes = [probe("before", lines=[], why_none=why)] if why else [probe("before"), probe("after", 0.98)]
    for each in probes:
        for place in each["lines"]:
            place["at_least"] = place["kind"] == "sequential"
    run = run_of("cold (guest)", *probes)
    text = shown(run)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" not in text
    pages = written_on(section_pages(run, "roofline"))
    write_site([run], tmp_path / "site")
    site = " ".join(unescape(path.read_text()) for path in (tmp_path / "site").glob("suite*.html"))
    for output in (text, pages, site):
        words = " ".join(output.split())
        assert "share of the device's speed" in words.lower()
        assert "2.50/5,000/4.00" in words
        assert (why or "10%/2.5%") in words
        assert why or "40,000 / 39,200" in words
        assert why or "1,000k / 1,000k" in words


def test_conditions_of_another_folder_have_no_share_of_this_one() -> None:
    run = run_of()
    moved = [changed(each, conditions=Conditions(cache="cold (guest)", work_dir="/mnt")) for each in run.samples]
    assert SHARE not in found(replace(run, samples=tuple(moved)))
