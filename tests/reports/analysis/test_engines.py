"""The suite engines separates the effects of format and call. It uses paired rounds, never a mean over formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results.records import Conditions, Run, RunInfo, Sample, changed
from reports.analysis.columns import READ_TIME, SAVE_TIME
from reports.analysis.engines import answers, calls_of, is_about_calls, ratio_text, texts
from reports.analysis.sections import TITLES
from reports.analysis.tables import Table, tables
from reports.sources.reproduction import reproduce
from tests.reports.factory import make_run, make_sample
from tests.reports.terminal_text import shown

TIMES_MS: Mapping[str, tuple[int, int]] = {
    "csv[engine=pandas]": (2000, 800),
    "csv[engine=polars]": (100, 40),
    "csv[engine=pandas,parser=pyarrow]": (2010, 200),
    "feather[engine=pyarrow,codec=none]": (20, 10),
    "feather[engine=pandas,codec=none]": (30, 10),
    "orc[engine=pyarrow,codec=none]": (60, 50),
}
"""Variant -> milliseconds of save and read."""


def run_of(times_ms: Mapping[str, tuple[int, int]] = TIMES_MS, rounds: int = 7, **conditions: str) -> Run:
    samples: list[Sample] = []
    for number in range(1, rounds + 1):
        slower = 1 + number / 10  # A factor that slows down a whole round cancels out.
        for variant, (save_ms, read_ms) in {**times_ms, "raw-io": (5, 5)}.items():
            for operation, time_ms in (("save", save_ms), ("read", read_ms)):
                target = "arrow" if variant == "raw-io" else "pandas"
                samples.append(
                    make_sample(
                        suite="engines",
                        operation=operation,
                        variant=variant,
                        round=number,
                        position=len(samples),
                        conditions=Conditions(target=target, **conditions),
                        figures={"wall_ns": int(time_ms * slower * 1e6), "cpu_ns": int(time_ms * 1e6)},
                    )
                )
    return Run(Path("results/run"), RunInfo(), tuple(samples), ())


def table_of(times_ms: Mapping[str, tuple[int, int]] = TIMES_MS, rounds: int = 7) -> Table:
    (table,) = tables(run_of(times_ms, rounds))
    return table


def test_each_format_has_its_fastest_and_its_slowest_call() -> None:
    csv = next(calls for calls in calls_of(table_of(), READ_TIME) if calls.format == "csv")
    assert csv.fastest.variant == "csv[engine=polars]"
    assert csv.slowest.variant == "csv[engine=pandas]"
    assert csv.by_call is not None
    assert csv.by_call.ratio == pytest.approx(20)
    assert csv.by_format.ratio == pytest.approx(4)


def test_formats_are_compared_by_their_fastest_calls_without_raw_io() -> None:
    assert [calls.format for calls in calls_of(table_of(), READ_TIME)] == ["feather", "csv", "orc"]
    assert [calls.format for calls in calls_of(table_of(), SAVE_TIME)] == ["feather", "orc", "csv"]


def test_with_few_counted_calls_no_fastest_is_named() -> None:
    run = run_of()
    left_out = [variant for variant in TIMES_MS if not variant.startswith("feather")]
    busy = [changed(each, unsettled=each.operation == "read" and each.variant in left_out) for each in run.samples]
    (table,) = tables(replace(run, samples=tuple(busy)))
    assert calls_of(table, READ_TIME) == []
    assert len(calls_of(table, SAVE_TIME)) == 3
    assert any(each.startswith("read: only 2 of 6 calls") for each in answers(table))


def test_ratios_are_paired_by_round() -> None:
    """Rounds differ by half, but the ratio within each round is the same."""
    csv = next(calls for calls in calls_of(table_of(), READ_TIME) if calls.format == "csv")
    assert csv.by_call is not None
    assert csv.by_call.low == pytest.approx(20)
    assert csv.by_call.high == pytest.approx(20)


def test_a_format_with_one_call_has_no_call_to_choose() -> None:
    orc = next(calls for calls in calls_of(table_of(), READ_TIME) if calls.format == "orc")
    assert orc.by_call is None
    assert texts(orc) == ("orc", "pyarrow", "", "", "5.00")


def test_the_answer_names_both_effects_and_ties() -> None:
    read = next(text for text in answers(table_of()) if text.startswith("read"))
    assert "20.0 times (csv) as long as its fastest" in read
    assert "no clear difference between the calls of feather" in read
    assert "orc takes 5.00 times as long as feather" in read
    save = next(text for text in answers(table_of()) if text.startswith("save"))
    assert "from 1.50 times (feather) to 20.1 times (csv)" in save


def test_under_five_rounds_there_is_no_verdict() -> None:
    few = list(answers(table_of(rounds=4)))
    assert all(text.count("under 5 rounds") == 3 for text in few), "the calls of two formats, and the formats"
    assert not any("under 5 rounds" in text for text in answers(table_of(rounds=5)))
    csv = next(calls for calls in calls_of(table_of(rounds=4), READ_TIME) if calls.format == "csv")
    assert ratio_text(csv.by_format) == "4.00"


def test_a_slowest_call_of_few_common_rounds_is_named_with_the_doubt() -> None:
    """Formats have enough rounds in common, but the slowest call of CSV has only three with the fastest."""
    run = run_of()
    few = tuple(each for each in run.samples if each.variant != "csv[engine=pandas]" or each.round <= 3)
    (table,) = tables(replace(run, samples=few))
    read = next(text for text in answers(table) if text.startswith("read"))
    calls, formats = read.split("; ")
    assert "(csv, under 5 rounds in common: may be chance) as long as its fastest" in calls
    assert calls.endswith("between the calls of feather")
    assert "under 5 rounds" not in formats


def test_one_format_with_one_call_answers_nothing() -> None:
    assert list(answers(table_of({"orc[engine=pyarrow,codec=none]": (60, 50)}))) == []


def test_only_the_suite_engines_is_about_calls() -> None:
    assert is_about_calls(table_of())
    assert not any(map(is_about_calls, tables(make_run(datasets=("eq",)))))


def test_the_terminal_shows_the_answer_below_each_table() -> None:
    text = shown(run_of())
    assert f"eq: {TITLES['calls']}" in text
    line = next(line for line in text.splitlines() if line.strip().startswith("csv ") and "20.0" in line)
    assert line.split() == ["csv", "polars", "pandas", "20.0", "4.00"]
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("call x: ") == 1
    assert "call x" not in shown(make_run(datasets=("eq",)))


def test_without_a_figure_nothing_is_shown() -> None:
    run = run_of()
    uncounted = replace(run, samples=tuple(changed(sample, unsettled=True) for sample in run.samples))
    assert TITLES["calls"] not in shown(uncounted)
    assert "call x" not in shown(uncounted)


def test_the_suite_is_not_compared_with_the_thesis() -> None:
    assert reproduce(run_of()).comparisons == ()
