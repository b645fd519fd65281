"""Near-storage reading: every output shows the known figures of an invented run, and leaves out what does not
belong."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from bench_runner.results.records import Failure, Run, Sample, changed
from reports.analysis import figures
from reports.analysis.access.uses import has_uses
from reports.analysis.near_storage.curves import curves_of
from reports.analysis.near_storage.side_costs import near_storage_of
from reports.analysis.sections import Contents, sections_of, sections_of_run
from reports.analysis.varied.charts import crossover_texts
from reports.site.pages import write_site
from reports.text.page import WIDTH
from tests.reports import invented_near_storage as invented
from tests.reports.factory import make_run, with_info
from tests.reports.pdf_text import section_pages, written_on
from tests.reports.terminal_text import shown

WIRE = "bytes over the network, MB"


@pytest.fixture(scope="module")
def run() -> Run:
    return invented.near_storage_run()


@pytest.fixture(scope="module")
def contents(run: Run) -> Contents:
    return Contents(run)


def of_network(contents: Contents, network: str) -> dict[str, figures.Figures]:
    (table,) = (table for table in contents.tables if table.conditions.network == network)
    return {each.title: each for each in near_storage_of(contents.run, table)}


def of_label(found: figures.Figures, label: str) -> dict[str, str]:
    return dict(zip(found.headers, dict(found.lines)[label], strict=True))


# --- throughput -----------------------------------------------------------------------------------------------------


def test_a_chart_for_each_network_and_place_has_what_was_measured_of_each_way(contents: Contents) -> None:
    charts = {(chart.conditions.network, chart.axis.rest): chart for chart in contents.throughput_lines}
    places = ("clustered", "scattered")
    assert list(charts) == [(network, place) for place in places for network in ("", "loopback", "100mbit")]
    local, slow = charts["", "clustered"], charts["100mbit", "clustered"]
    assert local.axis.values == (0.0, 1.0, 10.0, 25.0, 50.0, 100.0)
    assert {"pyarrow on the files", "DuckDB on them"} == {line.label for line in local.lines} - {
        line.label for line in slow.lines
    }
    lines = {line.label: line for line in slow.lines}
    expected = invented.STORED_BYTES / invented.wall_ns(invented.V2, 0.1, "100mbit") * 1e9
    assert lines["V2 (byte ranges)"].points[10.0].median == pytest.approx(expected, rel=0.04)
    assert lines["fetch all"].points[0.0].median == pytest.approx(lines["fetch all"].points[100.0].median, rel=0.04)
    assert lines["V2 (byte ranges)"].marks[10.0] == "*"
    # In this run answers are larger than files. If nearly everything is requested over a slow line, fetching the file
    # wins.
    assert "fetch all" in slow.label(slow.crossovers.found[-1].after)  # type: ignore[union-attr]
    assert all(" %" in text for text in crossover_texts(slow))


def test_variants_that_return_too_many_rows_never_win(contents: Contents) -> None:
    named = {name for chart in contents.throughput_lines for name in _winners(chart)}
    assert named
    assert not any("technique" in name for name in named)


def _winners(chart: object) -> list[str]:
    winners = chart.crossovers  # type: ignore[attr-defined]
    return [*winners.winners, *(name for each in winners.found for name in (each.before, each.after))]


def test_raw_io_is_not_an_access_path(run: Run) -> None:
    yardstick = tuple(
        changed(sample, variant="raw-io[engine=readinto]") for sample in run.samples if sample.variant == invented.FETCH
    )
    charts = Contents(replace(run, samples=(*run.samples, *yardstick))).throughput_lines
    assert charts
    assert not any("raw-io" in line.variant for chart in charts for line in chart.lines)


def test_queries_are_charted_once(contents: Contents) -> None:
    """Queries are shown as throughput, not additionally as times over a parameter."""
    assert {chart.axis.title for chart in contents.lines} == {"files"}


# --- costs other than times ------------------------------------------------------------------------------------------


def test_costs_of_services_are_shown_by_way_and_operation(contents: Contents) -> None:
    found = of_network(contents, "loopback")
    wire = of_label(found[WIRE], "V2 (byte ranges)")
    assert (wire["100 %"], wire["10 %"], wire["0 %"]) == ("240", "24.0", "0.010")
    assert of_label(found[WIRE], "fetch all")["0 %"] == "200"
    assert "with headers" in found[WIRE].notes[0]
    memory = found["memory of the services, MB: before the query, and increase at its peak"]
    assert of_label(memory, "V1 (rows)")["10 %"] == "85.0 +3.00"
    cpu = of_label(found["CPU time of the services, ms"], "V2 (byte ranges)")
    assert float(cpu["10 %"]) == pytest.approx(invented.wall_ns(invented.V2, 0.1, "loopback") / 4e6, rel=0.04)
    assert "counted by the proxy" in of_network(contents, "100mbit")[WIRE].notes[0]


def test_bytes_from_the_device_are_shown_where_there_are_any(run: Run, contents: Contents) -> None:
    title = "bytes that the services read from the device, MB"
    assert title not in of_network(contents, "loopback")
    cold = replace(
        run,
        samples=tuple(
            changed(sample, figures={**sample.figures, "node_device_bytes": 7_000_000})
            if sample.conditions.network and sample.operation != "save"
            else sample
            for sample in run.samples
        ),
    )
    assert of_label(of_network(Contents(cold), "loopback")[title], "V2 (byte ranges)")["10 %"] == "7.00"


def test_techniques_metadata_and_row_groups_are_compared(contents: Contents) -> None:
    found = of_network(contents, "")
    techniques = found["V1 technique by technique, for a query of 100 values that 1 % of the row groups have"]
    left_out = of_label(techniques, "row groups left out")["speedup over the line above"]
    assert float(left_out.partition(" ")[0]) == pytest.approx(2802 / 28, rel=0.05)
    assert of_label(techniques, "everything is read")["speedup over the line above"] == ""
    metadata = found["memory of the metadata of this many files, MB"]
    assert of_label(metadata, "compact (V2)")["640 files"] == "51.2"
    assert of_label(metadata, "footers, parsed (V1)")["10 files"] == "20.0"
    groups = found["time relative to row groups of 10,000 rows"]
    of_small = of_label(groups, "V2 (byte ranges), groups of 550")
    assert float(of_small["100 %"].partition(" ")[0]) == pytest.approx(2, rel=0.03)
    assert not {"CPU time of the services, ms"} & found.keys()


@pytest.mark.parametrize("change", ["cached", "wrong"])
def test_cached_and_wrong_answers_are_no_technique(run: Run, change: str) -> None:
    query = "query[groups=0.01,values=100]"
    mismatch = Failure(kind="mismatch", reason="row 3 is missing")

    def marked(sample: Sample) -> Sample:
        if (sample.variant, sample.operation) != (invented.GROUPS_ALONE, query):
            return sample
        if change == "cached":
            return changed(sample, cached=True)
        return changed(sample, figures={}, failure=mismatch) if sample.round == 5 else sample

    found = of_network(Contents(replace(run, samples=tuple(map(marked, run.samples)))), "")
    techniques = found["V1 technique by technique, for a query of 100 values that 1 % of the row groups have"]
    labels = [label for label, _ in techniques.lines]
    assert "everything is read" in labels
    assert "row groups left out" not in labels


def test_memory_below_the_limit_of_the_probe_is_no_number(run: Run) -> None:
    """The invented clients need at least 1 MB; three times the error of this probe is 6 MB."""
    found = Contents(with_info(run, probe={"error_bytes": 2_000_000}))
    of_client = of_network(found, "loopback")["peak memory increase of the client, MB"]
    memory = of_label(of_client, "V2 (byte ranges)")
    assert (memory["0 %"], memory["10 %"]) == ("<6.00", "41.0")
    metadata = of_network(found, "")["memory of the metadata of this many files, MB"]
    assert of_label(metadata, "compact (V2)") == {"10 files": "<6.00", "640 files": "51.2"}


# --- curves ---------------------------------------------------------------------------------------------------------


def test_curves_are_of_what_is_read_near_the_storage(contents: Contents) -> None:
    parameters, errors, rates = curves_of(contents.throughput)
    labels = [label for label, _ in parameters.lines]
    assert labels[0] == "V2 (byte ranges), one process"
    assert labels[-1] == "V1 (rows), footers parsed, loopback at 100 Mbit/s"
    assert not any("fetch" in label or "nothing" in label or "DuckDB" in label for label in labels)
    assert all("±" in text for _, texts in parameters.lines for text in texts)
    assert all(abs(float(text.removesuffix(" %"))) < 5 for _, texts in errors.lines for text in texts)
    of_v2 = of_label(rates, "V2 (byte ranges), one process")
    # Slow queries take most of the time.
    assert float(of_v2["Snowset sustained GB/s"]) < float(of_v2["Snowset mean GB/s"])


def test_too_few_points_give_no_curve(run: Run) -> None:
    few = tuple(sample for sample in run.samples if "groups=0.5]" not in sample.operation)
    few = tuple(sample for sample in few if "groups=0.25]" not in sample.operation)
    contents = Contents(replace(run, samples=few))
    assert sections_of_run(contents)[0].name == "throughput"
    assert "curves" not in [section.name for section in sections_of_run(contents)]


# --- every output ---------------------------------------------------------------------------------------------------

_TOLD = ("V2 (byte ranges), groups of 550", WIRE, "footers, as bytes (V1)", "fetch all")


def test_every_output_shows_all_of_it(tmp_path: Path) -> None:
    run = invented.near_storage_run(rounds=1, networks=("", "loopback"))
    text = shown(run)
    pages = "".join(written_on(section_pages(run, name)) for name in ("throughput", "curves", "near storage"))
    site = write_site([run], tmp_path / "site").with_name("suite-near-storage.html").read_text(encoding="utf-8")
    for output in (text, pages, unescape(site).replace("<wbr>", "")):
        assert all(told in output for told in _TOLD)
    assert max(map(len, text.split("\n"))) <= WIDTH
    # The page begins with the answer.
    assert site.index("Throughput by the share") < site.index("snowset, 1,000,000 rows")


def test_no_other_run_has_any_of_it() -> None:
    contents = Contents(make_run(datasets=("eq",), tracks=("plain",), rounds=1))
    assert "near storage" not in [section.name for table in contents.tables for section in sections_of(table)]
    assert not contents.throughput_lines


def test_access_paths_are_not_offered_as_formats(contents: Contents) -> None:
    assert not any(map(has_uses, contents.tables))
