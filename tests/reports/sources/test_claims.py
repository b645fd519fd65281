"""Published claims beside a run: which hold, which do not, which cannot be tested, and why."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources

import pytest
from rich.console import Console

from bench_runner.results.records import Conditions, Run, Sample
from bench_runner.suites import SUITES
from reports.sources import f3, lance
from reports.sources.claims import Judged, Source, judged, published
from reports.sources.claims_shown import SOURCES, markdown, show
from reports.sources.judging import Verdict
from tests.reports.factory import make_run, make_sample

ARROW = Conditions(target="arrow", track="access")
ONE, TEN = "take[rows=1,handle=kept]", "take[rows=10,handle=kept]"


def run_of(times_ms: Mapping[tuple[str, str, str], float], *, rounds: int = 7, fallback: str = "") -> Run:
    """A run whose cells (operation, variant, data set) took so long, a little more in each round."""

    def samples() -> Iterator[Sample]:
        for number in range(1, rounds + 1):
            for (operation, variant, dataset), value in times_ms.items():
                yield make_sample(
                    suite="access",
                    operation=operation,
                    variant=variant,
                    dataset=dataset,
                    conditions=ARROW,
                    round=number,
                    figures={"wall_ns": int(value * 1e6 * (1 + number / 1000))},
                    fallback=fallback,
                )

    return replace(make_run(datasets=("eq",), tracks=("plain",), rounds=1), samples=tuple(samples()))


def of(key: str, source: Source, *runs: Run) -> Judged:
    return next(each for each in judged(runs, source) if each.claim.key == key)


ROW = {
    (ONE, "lance[engine=pylance]", "events"): 0.5,
    (ONE, "f3[codec=none]", "events"): 1.0,
    (ONE, "vortex[engine=vortex-data]", "events"): 2.0,
    (ONE, "orc[engine=pyarrow,codec=none]", "events"): 8.0,
    (ONE, "parquet[engine=pyarrow,codec=none]", "events"): 9.0,
}


def test_a_claim_holds_where_every_relation_does() -> None:
    for key in ("lance-first", "f3-second", "parquet-last"):
        found = of(key, f3.SOURCE, run_of(ROW))
        assert found.verdict is Verdict.HOLDS, key
        assert found.ours
        assert "core, bi, classic, geo, log, ml, tpch-lineitem: not in this run" in found.reason
        assert "the rest is measured by run access" in found.reason
    assert "our F3 is Python and C, theirs Rust" in of("f3-second", f3.SOURCE, run_of(ROW)).reason


def test_a_claim_does_not_hold_where_one_relation_is_contradicted() -> None:
    other = {**ROW, (ONE, "f3[codec=none]", "events"): 3.0}
    found = of("f3-second", f3.SOURCE, run_of(other))
    assert found.verdict is Verdict.DOES_NOT
    assert found.ours == ("events: f3[codec=none] 3.01 ms, vortex[engine=vortex-data] 2.01 ms",)
    assert of("lance-first", f3.SOURCE, run_of(other)).verdict is Verdict.HOLDS


def test_a_claim_of_how_many_times_is_held_to_that() -> None:
    cells = {
        (ONE, "lance[engine=pylance]", "events"): 1.0,
        (ONE, "parquet[engine=pyarrow,codec=none]", "events"): 99.0,
    }
    key = "far-faster-than-plain-parquet"
    assert of(key, lance.SOURCE, run_of(cells)).verdict is Verdict.DOES_NOT
    cells[ONE, "parquet[engine=pyarrow,codec=none]", "events"] = 101.0
    assert of(key, lance.SOURCE, run_of(cells)).verdict is Verdict.HOLDS
    alike = {(TEN, lance.MINI_BLOCK, "values[bytes=64]"): 1.0, (TEN, lance.FULL_ZIP, "values[bytes=64]"): 1.4}
    assert of("alike-when-small", lance.SOURCE, run_of(alike)).verdict is Verdict.HOLDS
    alike[TEN, lance.FULL_ZIP, "values[bytes=64]"] = 1.6
    assert of("alike-when-small", lance.SOURCE, run_of(alike)).verdict is Verdict.DOES_NOT
    alike[TEN, lance.FULL_ZIP, "values[bytes=64]"] = 0.6
    assert of("alike-when-small", lance.SOURCE, run_of(alike)).verdict is Verdict.DOES_NOT


def test_what_a_run_lacks_names_the_command_that_measures_it() -> None:
    nothing = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    for source in SOURCES.values():
        for each in judged([nothing], source):
            assert each.verdict is Verdict.NOT_TESTABLE
            expected = each.claim.untestable or f"not in this run; measure it: {each.claim.command}"
            assert each.reason == expected
            assert each.reason
    lacking = {key: value for key, value in ROW.items() if "orc" not in key[1]}
    found = of("f3-second", f3.SOURCE, run_of(lacking))
    assert (found.verdict, found.ours) == (Verdict.NOT_TESTABLE, ())
    few = of("f3-second", f3.SOURCE, run_of(ROW, rounds=2))
    assert few.verdict is Verdict.NOT_TESTABLE
    assert "2 rounds" in few.reason


def test_what_was_read_whole_for_a_row_is_no_figure_of_it() -> None:
    found = of("f3-second", f3.SOURCE, run_of(ROW, fallback="read-all"))
    assert found.verdict is Verdict.NOT_TESTABLE
    assert found.reason == "not in this run; measure it: run access"


def test_of_several_runs_the_one_counts_that_has_it() -> None:
    nothing = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    assert of("f3-second", f3.SOURCE, nothing, run_of(ROW)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_claim_has_published_figures_and_every_figure_a_claim(source: Source) -> None:
    assert set(published(source)) == {claim.key for claim in source.claims}
    text = resources.files("reports.sources").joinpath(f"published/{source.file}").read_text()
    for row in csv.DictReader(text.splitlines()):
        assert all(row[name] for name in ("claim", "source", "what", "value")), row
    for claim in source.claims:
        assert (claim.finding is None) == bool(claim.untestable), claim.key
        assert bool(claim.command) == (claim.finding is not None), claim.key


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_claims_are_about_what_the_suites_measure(source: Source) -> None:
    """A suite that is renamed, or leaves a variant out, must not make claims untestable for ever."""
    measured = {variant for suite in SUITES.values() for variant in suite.variants}
    for claim in source.claims:
        suites = [name for name in claim.command.partition("run ")[2].split() if name in SUITES]
        if claim.finding is None or "access" not in suites:
            continue
        assert set(claim.finding.about) <= measured, claim.key
        operations = {op for name in suites for op in SUITES[name].operations}
        assert {pair.lower.column.operation for pair in claim.finding.pairs} <= operations, claim.key


def test_both_forms_tell_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(ROW)
    for name, source in SOURCES.items():
        show([run], name, Console(width=100))
        out = " ".join(capsys.readouterr().out.split())
        text = markdown([run], name)
        assert f"--against {name} --markdown" in text
        for claim in source.claims:
            assert claim.statement in out
            assert f"| {claim.statement} |" in text
    told = "f3[codec=none] 1.00 ms, vortex[engine=vortex-data] 2.01 ms (take 1 row time, cache warm, target arrow)"
    show([run], "f3", Console(width=100))
    assert f"ours: events: {told}" in " ".join(capsys.readouterr().out.split())
    assert f"| events: {told} |" in markdown([run], "f3")
