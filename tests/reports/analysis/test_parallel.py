"""Tables in partitions in reports: whether they pay follows from intervals, and ways of working are never mixed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from bench_runner.results.information import information
from bench_runner.results.records import Conditions, Failure, Run, Sample, changed
from reports.analysis.figures import Figures
from reports.analysis.parallel import MEANING, NO_ANSWER, parallel_of, serial_fraction
from reports.analysis.sections import Contents, sections_of
from reports.analysis.tables import tables
from reports.site.pages import write_site
from reports.text.page import WIDTH
from tests.reports.factory import MACHINE, make_run, make_sample
from tests.reports.pdf_text import drawn, section_pages
from tests.reports.terminal_text import shown

FASTER, EQUAL, SLOWER = "parquet[engine=pyarrow,codec=none]", "orc[engine=pyarrow,codec=none]", "csv[engine=pandas]"
SPEED_UPS: Mapping[str, Callable[[int], float]] = {
    FASTER: lambda count: count,
    EQUAL: lambda count: 1,
    SLOWER: lambda count: 1 / count,
    "raw-io": lambda count: 2 * count,
}
"""Variant -> true speed-up by number of partitions, over the plain call and over one partition."""
SAVE, READ = "save-parallel[partitions={}]", "read-parallel[partitions={},result=gathered]"
LEFT, SCAN = "read-parallel[partitions={},result=left]", "scan-parallel[partitions={},selectivity=0.01]"
COLD = "save-parallel[partitions={},pool=cold]"
BY_THREADS = "read-parallel[partitions={},by=threads,result=gathered]"
PLAIN_S = 1.2


def run_of(
    speed_ups: Mapping[str, Callable[[int], float]] = SPEED_UPS,
    *,
    spelled: tuple[str, ...] = (SAVE, READ, SCAN),
    counts: tuple[int, ...] = (1, 2, 4),
    rounds: int = 7,
    cores: int | None = 2,
    change: Callable[[Sample], Sample] = lambda sample: sample,
) -> Run:
    """Return a run whose times have a spread of 2 %. A cold pool takes ten times as long, threads a tenth."""
    source = random.Random(3)
    works = {text.format(count): count for text in spelled for count in counts}
    samples = []
    for number in range(1, rounds + 1):
        for variant, speed_up in speed_ups.items():
            for operation, count in {"save": 0, "read": 0, **works}.items():
                way = 10 if "cold" in operation else 0.1 if "threads" in operation else 1
                wall_ns = int(1e9 * PLAIN_S * way * source.lognormvariate(0, 0.02) / (speed_up(count) if count else 1))
                figures = {"wall_ns": wall_ns, "cpu_ns": wall_ns * max(count, 1), "peak_private_bytes": 80_000_000}
                if count:
                    figures |= {"peak_process_bytes": 80_000_000 // count}
                if operation.startswith("save"):
                    figures |= {"files_count": max(count, 1)}
                    figures |= {("growth_bytes" if count else "size_bytes"): 47_000_000 + 1_000_000 * count}
                sample = make_sample(
                    suite="parallel",
                    operation=operation,
                    variant=variant,
                    round=number,
                    position=len(samples),
                    conditions=Conditions(track="access", target="arrow" if variant == "raw-io" else "pandas"),
                    figures=figures,
                )
                samples.append(change(sample))
    info = {
        "id": "parallel",
        "machine": {"name": MACHINE, "cores": cores},
        "operations": {name: {"title": name, "writes": name.startswith("save")} for name in ("save", "read", *works)},
        "suites": {"parallel": "Does it pay?"},
        "datasets": {"eq": {"rows": 1_000_000, "title": "eq"}},
    }
    return Run(Path("results/parallel"), information(info), tuple(samples), ())


def figures_of(run: Run) -> dict[str, Figures]:
    (table,) = tables(run)
    return {figures.title: figures for figures in parallel_of(run, table)}


def line_of(figures: Figures, label: str) -> dict[str, str]:
    heads = (header.replace("\n", " ") for header in figures.headers)
    return dict(zip(heads, dict(figures.lines)[label], strict=True))


def of_operation(operation: str, variant: str, **fields: object) -> Callable[[Sample], Sample]:
    def change(sample: Sample) -> Sample:
        return changed(sample, **fields) if (sample.operation, sample.variant) == (operation, variant) else sample

    return change


# --- does it pay? -------------------------------------------------------------------------------------------------


def test_faster_equal_and_slower_are_told_apart() -> None:
    save = figures_of(run_of())["save"]
    for count in (2, 4):
        faster, equal, slower = (line_of(save, f"{name}, {count}") for name in ("parquet", "orc", "csv"))
        assert [each["pays?"] for each in (faster, equal, slower)] == ["yes", "open", "no"]
        for each, truth in ((faster, count), (equal, 1), (slower, 1 / count)):
            low, high = map(float, each["95 % interval"].split("-"))
            assert low <= truth <= high
            assert float(each["speed-up"]) == pytest.approx(truth, rel=0.03)
        assert [float(each["efficiency"]) for each in (faster, equal, slower)] == pytest.approx(
            [1, 1 / count, 1 / count**2], abs=0.03
        )
    assert line_of(save, "parquet, one file")["pays?"] == ""
    assert line_of(save, "parquet, 1")["efficiency"] == "1.00"


def test_the_answer_names_how_many_and_the_largest_speed_up() -> None:
    answer = figures_of(run_of())["does it pay?"]
    told = line_of(answer, "save")
    assert [told["pays for"], told["does not pay for"], told["open for"]] == ["1 of 3", "1", "1"]
    assert told["most for"].startswith("parquet, 4: 4.0")
    assert answer.notes[0].startswith("by processes of a warm pool, it pays for 1 of 3 variants, most for parquet (")


def test_if_nothing_is_faster_it_does_not_pay_for_any_variant() -> None:
    none = {variant: speed_up for variant, speed_up in SPEED_UPS.items() if variant != FASTER}
    answer = figures_of(run_of(none, spelled=(SAVE,), counts=(1, 2)))["does it pay?"]
    assert answer.notes[0] == "by processes of a warm pool, it does not pay for any variant (2 compared, open for 1)"
    assert line_of(answer, "save")["most for"] == "-"


@pytest.mark.parametrize("rounds", [1, 4])
def test_few_rounds_claim_nothing(rounds: int) -> None:
    found = figures_of(run_of(rounds=rounds))
    assert found["does it pay?"].notes[0] == NO_ANSWER
    assert all(texts == ("?", "?", "?", "-") for _, texts in found["does it pay?"].lines)
    assert {line_of(found["save"], f"parquet, {count}")["pays?"] for count in (1, 2, 4)} == {"?"}
    assert {line_of(found["save"], f"parquet, {count}")["95 % interval"] for count in (1, 2, 4)} == {"-"}


def test_scans_are_compared_with_one_partition_unless_there_is_a_plain_scan() -> None:
    found = figures_of(run_of())
    answer = line_of(found["does it pay?"], "scan of 1 %, against 1 partition")
    assert answer["pays for"] == "1 of 3"
    assert "parquet, one file" not in dict(found["scan of 1 %"].lines)
    assert line_of(found["scan of 1 %"], "parquet, 1")["speed-up"] == "-"
    assert float(line_of(found["scan of 1 %"], "parquet, 2")["speed-up"]) == pytest.approx(2, rel=0.03)
    run = run_of()
    plain = [
        changed(sample, operation="scan[selectivity=0.01]", figures={**sample.figures, "wall_ns": 300_000_000})
        for sample in run.samples
        if sample.operation == "read"
    ]
    twice = figures_of(replace(run, samples=(*run.samples, *plain)))["scan of 1 %"]
    assert float(line_of(twice, "parquet, 4")["speed-up"]) == pytest.approx(1, rel=0.03)


# --- ways and costs -----------------------------------------------------------------------------------------------


def test_cold_pools_and_threads_are_never_mixed_with_warm_pools() -> None:
    with_ways = figures_of(run_of(spelled=(SAVE, COLD, READ, BY_THREADS)))
    without = figures_of(run_of(spelled=(SAVE, READ)))
    for count in (2, 4):
        cold, warm = (line_of(with_ways["save"], f"parquet, {count}{way}") for way in (" cold", ""))
        assert float(cold["speed-up"]) == pytest.approx(count / 10, rel=0.05)
        assert float(warm["speed-up"]) == pytest.approx(count, rel=0.05)
        assert float(cold["efficiency"]) == pytest.approx(1, rel=0.05)
        threads = line_of(with_ways["read, gathered"], f"parquet, {count} threads")
        assert float(threads["speed-up"]) == pytest.approx(10 * count, rel=0.05)
    answer = with_ways["does it pay?"]
    assert [label for label, _ in answer.lines] == [
        "save", "save, cold", "read, gathered", "read, gathered, threads"
    ]  # fmt: skip
    assert line_of(answer, "save")["pays for"] == line_of(without["does it pay?"], "save")["pays for"] == "1 of 3"
    assert line_of(answer, "save, cold")["pays for"] == "0 of 3"
    assert answer.notes[1].startswith("by processes of a cold pool, it does not pay for any variant")
    assert answer.notes[2].startswith("by the library's own threads, it pays for 3 of 3 variants")


def test_costs_are_those_of_all_processes_and_of_the_largest() -> None:
    found = figures_of(run_of())
    four = line_of(found["save"], "parquet, 4")
    assert (four["peak MB"], four["peak of one MB"]) == ("80.0", "20.0")
    assert float(four["CPU s"]) == pytest.approx(PLAIN_S, rel=0.05)
    assert line_of(found["save"], "parquet, one file")["peak of one MB"] == "-"
    sizes = found["save: MB of all partitions, and number of files"]
    assert dict(sizes.lines)["parquet"] == ("47.0 (1)", "48.0 (1)", "49.0 (2)", "51.0 (4)")


# --- Amdahl -------------------------------------------------------------------------------------------------------


def amdahl(serial: float) -> Mapping[str, Callable[[int], float]]:
    return {FASTER: lambda count: 1 / (serial + (1 - serial) / count)}


def test_the_serial_fraction_is_found_with_enough_cores() -> None:
    found = figures_of(run_of(amdahl(0.2), counts=(1, 2, 4, 6, 8), cores=8))
    fractions = found["serial fraction by Amdahl's law"]
    assert fractions.headers == ("save", "read, gathered", "scan of 1 %")
    for text in dict(fractions.lines)["parquet"]:
        middle, interval = text.rstrip(")").split(" (")
        low, high = map(float, interval.split(" to "))
        assert low <= float(middle) <= high
        assert float(middle) == pytest.approx(0.2, abs=0.02)
        assert high - low < 0.06
    assert not any("no serial fraction" in note for note in found["does it pay?"].notes)


@pytest.mark.parametrize("cores", [2, None])
def test_fewer_cores_have_no_serial_fraction(cores: int | None) -> None:
    found = figures_of(run_of(amdahl(0.2), counts=(1, 2, 4, 6, 8), cores=cores))
    assert "serial fraction by Amdahl's law" not in found
    (why,) = (note for note in found["does it pay?"].notes if "no serial fraction" in note)
    assert why.endswith("the 2 cores" if cores else "which is unknown")


def test_a_serial_fraction_without_an_interval_is_not_claimed() -> None:
    found = figures_of(run_of(amdahl(0.2), counts=(1, 2, 4, 8), cores=8, rounds=4))
    assert set(dict(found["serial fraction by Amdahl's law"].lines)["parquet"]) == {"?"}


def test_the_fit_is_exact_without_noise() -> None:
    times = {count: {number: number * (0.2 + 0.8 / count) for number in range(1, 8)} for count in (1, 2, 4, 8)}
    found = serial_fraction(times)
    assert found is not None
    assert (found.low, found.median, found.high) == pytest.approx((0.2, 0.2, 0.2))


# --- failures -----------------------------------------------------------------------------------------------------


def test_a_failed_cell_is_shown_as_such() -> None:
    failure = Failure(kind="crash", reason="a process of the pool ended")
    change = of_operation(SAVE.format(4), FASTER, failure=failure, figures={}, fidelity=None)
    found = figures_of(run_of(change=change))
    assert line_of(found["save"], "parquet, 4")["time s"] == "crash"
    assert found["save"].notes == ("reason for parquet, 4: crash: a process of the pool ended",)
    assert line_of(found["save"], "parquet, 2")["pays?"] == "yes"
    assert line_of(found["does it pay?"], "save")["pays for"] == "1 of 3"


def test_a_refused_cell_has_a_note_and_no_line() -> None:
    refused = Failure(kind="refused", reason="its read takes one file")
    change = of_operation(BY_THREADS.format(4), SLOWER, failure=refused, figures={}, fidelity=None)
    read = figures_of(run_of(spelled=(READ, BY_THREADS), change=change))["read, gathered"]
    assert "csv, 4 threads" not in dict(read.lines)
    assert read.notes == ("reason for csv, 4 threads: refused: its read takes one file",)


def test_a_wrong_answer_has_no_speed_up() -> None:
    def change(sample: Sample) -> Sample:
        wrong = (sample.operation, sample.variant, sample.round) == (READ.format(2), FASTER, 3)
        failure = Failure(kind="mismatch", reason="two partitions are swapped")
        return changed(sample, failure=failure, figures={}, fidelity=None) if wrong else sample

    read = figures_of(run_of(change=change))["read, gathered"]
    assert line_of(read, "parquet, 2")["pays?"] == "-"
    assert line_of(read, "parquet, 4")["pays?"] == "yes"


def test_without_a_plain_call_there_is_no_verdict() -> None:
    refused = Failure(kind="refused", reason="dask has no plain call")
    found = figures_of(run_of(change=of_operation("save", FASTER, failure=refused, figures={}, fidelity=None)))
    assert line_of(found["save"], "parquet, 4")["pays?"] == "-"
    assert line_of(found["save"], "parquet, 4")["efficiency"] != "-"


# --- every output -------------------------------------------------------------------------------------------------


def test_the_terminal_shows_each_time_once_and_within_its_width() -> None:
    run = run_of(spelled=(SAVE, READ, LEFT, SCAN, BY_THREADS))
    text = shown(run)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "further operations" not in text
    told = " ".join(text.split())
    assert all(note in told for note in MEANING)
    assert "no serial fraction by Amdahl's law" in told


def test_other_operations_stay_further_operations() -> None:
    run = run_of()
    others = [changed(sample, operation="take[rows=10]") for sample in run.samples if sample.operation == "read"]
    (table,) = tables(replace(run, samples=(*run.samples, *others)))
    assert table.columns.listed == ("take[rows=10]",)


def test_pdf_and_site_have_them_too(tmp_path: Path) -> None:
    run = run_of(spelled=(SAVE, READ))
    pages = drawn(section_pages(run, "parallel"))
    write_site([run], tmp_path / "site")
    site = unescape((tmp_path / "site" / "suite-parallel.html").read_text(encoding="utf-8"))
    for output in (pages, site):
        assert "it pays for 1 of 3 variants" in output
        assert "51.0 (4)" in output
        assert "peak of" in output


def test_a_run_without_partitions_has_none() -> None:
    contents = Contents(make_run(datasets=("eq",), tracks=("plain",), rounds=1))
    assert "parallel" not in [section.name for table in contents.tables for section in sections_of(table)]
