"""Lines over a parameter: which lines exist, what they leave out, and that every report shows them."""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

from bench_runner.results.records import Run, Sample, changed
from reports.analysis.columns import Role
from reports.analysis.sections import Contents
from reports.analysis.tables import tables
from reports.analysis.varied.charts import Chart, Owner, crossover_texts, range_of, value_text
from reports.analysis.varied.heights import heights_apart
from reports.analysis.varied.lines import MOST_LINES, charts_of
from reports.pdf.lines import lines_pages
from reports.site.pages import write_site
from reports.text.page import WIDTH
from tests.reports.factory import make_run, write_run
from tests.reports.invented_lines import CROSSING, EQUAL, FLAT, STEEP, VALUES, over_data, over_operations
from tests.reports.pdf_text import drawn
from tests.reports.terminal_text import shown


def charts(run: Run) -> tuple[Chart, ...]:
    return charts_of(run, tables(run))


def test_an_operation_at_several_values_is_one_chart_of_its_time() -> None:
    (chart,) = charts(over_operations())
    assert (chart.axis.owner, chart.axis.title, chart.axis.values) == (Owner.OPERATION, "rows taken", VALUES)
    assert chart.axis.rest == "handle=kept"
    assert chart.column.role is Role.TIME
    assert {line.variant for line in chart.lines} == {name for name in CROSSING if "raw-io" not in name}
    assert chart.raw_io is not None
    (table,) = tables(over_operations())
    row = next(row for row in table.rows if row.variant == FLAT)
    (line,) = (line for line in chart.lines if line.variant == FLAT)
    assert [each.median for each in line.points.values()] == [
        cell.figures["wall_ns"].median for cell in row.cells.values()
    ]
    assert line.marks == {100: "=", 1_000: "*", 10_000: "*"} or line.marks == {100: "*", 1_000: "*", 10_000: "*"}


def test_only_what_differs_in_one_parameter_is_one_line() -> None:
    run = over_operations()
    reopened = [changed(each, operation=each.operation.replace("kept", "reopened")) for each in run.samples]
    both = Run(run.folder, run.info, (*run.samples, *reopened))
    assert {chart.axis.rest for chart in charts(both)} == {"handle=kept", "handle=reopened"}
    assert all(chart.axis.values == VALUES for chart in charts(both))


def test_two_values_of_the_data_are_a_line_only_where_they_were_asked_for() -> None:
    assert charts(over_operations(values=(1,))) == ()
    assert len(charts(over_operations(values=(1, 10)))) == 1
    assert charts(over_data(values=(1, 10))) == ()
    asked = over_data(values=(1, 10), request={"over": {"trait": "distinct", "points": ["1", "10"]}})
    assert len(charts(asked)) == 5


@pytest.mark.parametrize("told", [True, False])
def test_data_sets_that_differ_in_one_parameter_are_the_values(told: bool) -> None:
    """Names omit default values, so only a run that records all parameters has a point for the default."""
    found = charts(over_data(told=told))
    assert [chart.title for chart in found] == [
        *("save time", "read time", "size", "save peak memory", "read peak memory")
    ]
    for chart in found:
        assert (chart.axis.owner, chart.axis.title, chart.dataset) == (Owner.DATA, "distinct values", "")
        assert chart.axis.values == (VALUES if told else VALUES[1:])
        assert len({line.style for line in chart.lines}) == len(chart.lines)
    styles = {(line.variant, line.style) for chart in found for line in chart.lines}
    assert len(styles) == len({variant for variant, _ in styles})


def test_settings_of_variants_are_values_too_and_have_no_winner() -> None:
    times = {
        f"{name}[engine=x,{setting}={value}]": (lambda _, value=value: value / 100)
        for name, setting in (("parquet", "row_group_rows"), ("feather", "batch_rows"))
        for value in (1_000, 10_000, 100_000)
    }
    run = over_operations(times, (100,))
    found = [chart for chart in charts(run) if chart.axis.owner is Owner.VARIANT]
    assert {chart.axis.title for chart in found} == {"rows of a unit"}
    chart = next(chart for chart in found if chart.column.role is Role.TIME)
    assert chart.axis.values == (1_000, 10_000, 100_000)
    assert {line.label for line in chart.lines} == {"parquet", "feather"}
    assert crossover_texts(chart) == []


def test_unranked_variants_have_no_line() -> None:
    def spoilt(sample: Sample) -> Sample:
        if sample.variant == STEEP:
            return changed(sample, fallback="read-all")
        return changed(sample, cached=sample.variant == FLAT)

    (chart,) = charts(over_operations(change=spoilt))
    assert {line.variant for line in chart.lines} & {STEEP, FLAT} == set()
    assert chart.whole is not None
    assert chart.whole.variant == STEEP
    assert "read-all" in shown(over_operations(change=spoilt))


def test_at_most_eight_lines_include_every_winner() -> None:
    many = {f"f{number}[engine=x]": (lambda value, number=number: 5 + number + value**0.5) for number in range(12)}
    (chart,) = charts(over_operations({**many, **CROSSING}))
    assert len(chart.lines) == MOST_LINES
    assert {STEEP, FLAT} <= {line.variant for line in chart.lines}
    assert len(chart.left_out) == len(many) + len(CROSSING) - 1 - MOST_LINES
    assert "not shown: " in shown(over_operations({**many, **CROSSING}))


def test_the_planted_crossing_is_reported_and_equal_lines_have_none() -> None:
    (chart,) = charts(over_operations())
    (text,) = crossover_texts(chart)
    found = re.fullmatch(r"feather below, lance above: they cross at ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text)
    assert found is not None
    median, low, high = map(float, found.groups())
    assert low <= 100 <= high
    assert low < median < high
    (equal,) = charts(over_operations(EQUAL))
    (text,) = crossover_texts(equal)
    assert text.startswith("no crossing ")
    (few,) = charts(over_operations(rounds=3))
    assert ["under 5 rounds" in text for text in crossover_texts(few)] == [True]
    size = next(chart for chart in charts(over_data()) if chart.title == "size")
    assert crossover_texts(size) == ["feather below, lance above: they cross at 100"]


def test_sentences_name_the_values_and_variants_without_a_verdict() -> None:
    vortex, parquet = "vortex[engine=vortex-data]", "parquet[engine=pyarrow,codec=none]"
    times = {STEEP: lambda value: 1 + value**0.1, vortex: lambda value: 9.0, parquet: lambda value: 8.0}
    run = over_operations(times)
    samples = [
        each
        for each in run.samples
        if not (each.variant == vortex and "rows=100," in each.operation and each.round > 2)
        and not (each.variant == parquet and "rows=10," in each.operation)
    ]
    (chart,) = charts(Run(run.folder, run.info, tuple(samples)))
    assert crossover_texts(chart) == [
        "no crossing at the measured values: feather is best at every value",
        "too few rounds for a verdict: vortex at 100",
        "no ranked figure: parquet at 10",
    ]
    few = [each for each in run.samples if not (each.variant == vortex and each.round > 2)]
    (chart,) = charts(Run(run.folder, run.info, tuple(few)))
    assert crossover_texts(chart)[1:] == ["too few rounds for a verdict: vortex at every value"]


def test_a_variant_that_is_tied_at_every_value_is_named() -> None:
    (chart,) = charts(over_operations({name: EQUAL[name] for name in (STEEP, FLAT)}))
    (text,) = crossover_texts(chart)
    winners = [line.label for line in chart.lines if len(line.marks) == len(VALUES)]
    best = [line.label for line in chart.lines if list(line.marks.values()) == ["*"] * len(VALUES)]
    assert not best
    assert winners
    verb = "is" if len(winners) == 1 else "are"
    names = " and ".join(winners), " and ".join(winners[::-1])
    start = "no crossing at the measured values: "
    assert text in [f"{start}{each} {verb} best or tied with the best at every value" for each in names]


def test_times_too_short_for_the_clock_do_not_cross() -> None:
    def slow_clock(sample: Sample) -> Sample:
        return changed(sample, figures={**sample.figures, "empty_ns": 10**9})

    (chart,) = charts(over_operations(change=slow_clock))
    (text,) = crossover_texts(chart)
    assert text.startswith("no crossing ")
    assert "<10,000" in shown(over_operations(change=slow_clock)) or "<10.0" in shown(
        over_operations(change=slow_clock)
    )


def test_labels_do_not_overlap_and_stay_inside() -> None:
    placed = heights_apart([0.5, 0.51, 0.99, 1.0, 0.0], 0.1)
    ordered = sorted(placed)
    assert all(upper - lower >= 0.1 - 1e-9 for lower, upper in pairwise(ordered))
    assert ordered[0] >= 0
    assert ordered[-1] <= 1
    assert placed[0] < placed[1] < placed[2] < placed[3]
    assert heights_apart([0.2, 0.8], 0.1) == [0.2, 0.8]
    first, second, third = heights_apart([0.5, 0.5, 0.5], 0.1, [1.0, 1.0, 2.0])
    assert (second - first, third - second) == (pytest.approx(0.1), pytest.approx(0.15))


def test_raw_io_does_not_press_the_lines_together() -> None:
    (chart,) = charts(over_operations())
    low, high = range_of(chart)
    medians = chart.medians
    assert low >= min(medians) / 20
    assert high < max(medians) * 2


def test_values_are_formatted_for_people() -> None:
    assert [value_text(value) for value in (0, 0.001, 0.5, 1, 98.6, 1_234.5, 10_000)] == [
        *("0", "0.001", "0.5", "1", "98.6", "1,234", "10,000")
    ]


def test_runs_without_values_have_no_such_section() -> None:
    run = make_run(datasets=("eq", "int"), rounds=1, project=True)
    assert Contents(run).lines == ()
    assert "where the winner changes" not in shown(run)


def test_terminal_pdf_and_site_show_them(tmp_path: Path) -> None:
    run = over_data()
    text = shown(run)
    assert max(map(len, text.splitlines())) <= WIDTH
    told = [text for chart in charts(run) for text in crossover_texts(chart)]
    assert len(told) == 5
    assert all(each in " ".join(text.split()) for each in told)
    (page,) = lines_pages(Contents(run))
    written = drawn([page])
    assert "where the winner changes" in written
    assert all(each in written for each in told)
    write_site([run], tmp_path / "site")
    html = (tmp_path / "site" / "suite-sweep.html").read_text()
    assert all(each in unescape(html) for each in told)
    data = json.loads(re.search(r'id="page-data">(.*?)</script>', html, re.DOTALL)[1])  # type: ignore[index]
    found = [chart for section in data["sections"] for chart in section.get("charts", {}).get("lines", ())]
    assert [chart["metric"] for chart in found] == [chart.title for chart in charts(run)]
    crossing = found[0]["crossings"][0]
    assert crossing["low"] <= 100 <= crossing["high"]
    assert crossing["low"] < crossing["at"] < crossing["high"]
    addresses = {row["address"].partition("#")[0] for row in found[0]["rows"]}
    assert len(addresses) == len(VALUES)
    assert all((tmp_path / "site" / address).is_file() for address in addresses)


def test_the_site_chooses_lines_by_their_data_set_and_not_where_data_sets_are_the_values(tmp_path: Path) -> None:
    other = over_operations()
    both = Run(other.folder, other.info, (*other.samples, *(changed(each, dataset="core") for each in other.samples)))
    for name, run, chosen in (("use", both, ["core", "events"]), ("data", over_data(), [])):
        write_site([run], tmp_path / name)
        html = (tmp_path / name / f"suite-{run.samples[0].suite}.html").read_text()
        data = json.loads(re.search(r'id="page-data">(.*?)</script>', html, re.DOTALL)[1])  # type: ignore[index]
        of_lines = [section for section in data["sections"] if section.get("charts", {}).get("lines")]
        assert sorted(each["facets"]["dataset"] for each in of_lines if "dataset" in each["facets"]) == chosen


def test_they_are_there_when_a_run_is_read_again(tmp_path: Path) -> None:
    from bench_runner.results.records import read_run

    run = over_data()
    again = read_run(write_run(run, tmp_path / "run"))
    assert [chart.axis.values for chart in charts(again)] == [chart.axis.values for chart in charts(run)]
