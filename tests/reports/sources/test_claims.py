"""Published claims compared with a run: which claims hold, which do not, which cannot be tested, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from bench_runner.results.records import Conditions, Failure, Run, Sample, changed
from reports.analysis.near_storage.workloads import published_rows
from reports.sources.claims import MOST_NAMED, SOURCES, Judged, Publication, judged, needed_by, published
from reports.sources.claims_shown import markdown, show
from reports.sources.judgement import FindingVerdict
from tests.reports.factory import make_run, make_sample

ARROW = Conditions(target="arrow", track="access")
F3, LANCE = SOURCES["f3"], SOURCES["lance"]
MINI_BLOCK, FULL_ZIP = LANCE.variants["mini-block"], LANCE.variants["full-zip"]
ONE, TEN = "take[rows=1,handle=kept]", "take[rows=10,handle=kept]"


def run_of(times_ms: Mapping[tuple[str, str, str], float], *, rounds: int = 7, **told: Any) -> Run:
    """Return a run with these times by (operation, variant, data set). Times grow slightly from round to round.

    `told` applies to all samples."""

    def samples() -> Iterator[Sample]:
        for number in range(1, rounds + 1):
            for (operation, variant, dataset), value in times_ms.items():
                about = {"suite": "access", "operation": operation, "variant": variant, "dataset": dataset}
                figures = {"wall_ns": int(value * 1e6 * (1 + number / 1000))}
                yield make_sample(**{**about, "conditions": ARROW, "round": number, "figures": figures, **told})

    return replace(make_run(datasets=("eq",), tracks=("plain",), rounds=1), samples=tuple(samples()))


def both(one: Run, other: Run) -> Run:
    """Return the samples of two runs as one run. The samples of the first run come first."""
    return replace(one, samples=(*one.samples, *other.samples))


def of(key: str, source: Publication, *runs: Run) -> Judged:
    return next(each for each in judged(runs, source) if each.claim.key == key)


ROW = {
    (ONE, "lance[engine=pylance]", "events"): 0.5,
    (ONE, "f3[codec=none]", "events"): 1.0,
    (ONE, "vortex[engine=vortex-data,library_cache=off]", "events"): 2.0,
    (ONE, "orc[engine=pyarrow,codec=none]", "events"): 8.0,
    (ONE, "parquet[engine=pyarrow,codec=none]", "events"): 9.0,
}


def test_a_claim_holds_where_every_relation_does() -> None:
    for key in ("lance-first", "f3-second", "parquet-last"):
        found = of(key, F3, run_of(ROW))
        assert found.verdict is FindingVerdict.HOLDS, key
        assert found.ours
        assert "core, bi, classic, geo, log, ml, tpch-lineitem: not in this run" in found.reason
        assert f"{found.claim.command} measures take 1 row time" in found.reason
    assert "our F3 is Python and C, theirs Rust" in of("f3-second", F3, run_of(ROW)).reason


def test_a_claim_does_not_hold_where_one_relation_is_contradicted() -> None:
    other = {**ROW, (ONE, "f3[codec=none]", "events"): 3.0}
    found = of("f3-second", F3, run_of(other))
    assert found.verdict is FindingVerdict.DOES_NOT
    assert found.ours == ("events: f3[codec=none] 3.01 ms, vortex[engine=vortex-data,library_cache=off] 2.01 ms",)
    assert of("lance-first", F3, run_of(other)).verdict is FindingVerdict.HOLDS


def test_a_claimed_factor_must_be_reached() -> None:
    cells = {(ONE, "lance[engine=pylance]", "events"): 1.0, (ONE, "parquet[engine=pyarrow,codec=none]", "events"): 99.0}
    key = "far-faster-than-plain-parquet"
    assert of(key, LANCE, run_of(cells)).verdict is FindingVerdict.DOES_NOT
    cells[ONE, "parquet[engine=pyarrow,codec=none]", "events"] = 101.0
    assert of(key, LANCE, run_of(cells)).verdict is FindingVerdict.HOLDS
    alike = {(TEN, MINI_BLOCK, "values[bytes=64]"): 1.0, (TEN, FULL_ZIP, "values[bytes=64]"): 1.4}
    assert of("alike-when-small", LANCE, run_of(alike)).verdict is FindingVerdict.HOLDS
    alike[TEN, FULL_ZIP, "values[bytes=64]"] = 1.6
    assert of("alike-when-small", LANCE, run_of(alike)).verdict is FindingVerdict.DOES_NOT
    alike[TEN, FULL_ZIP, "values[bytes=64]"] = 0.6
    assert of("alike-when-small", LANCE, run_of(alike)).verdict is FindingVerdict.DOES_NOT


def test_missing_figures_name_the_command_that_measures_them() -> None:
    nothing = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    for source in SOURCES.values():
        for each in judged([nothing], source):
            assert each.verdict is FindingVerdict.NOT_TESTABLE
            if each.claim.untestable:
                assert each.reason == each.claim.untestable
            else:
                finding = each.claim.finding
                assert finding is not None
                columns = (side.column.title for pair in finding.pairs for side in (pair.lower, pair.higher))
                titles = list(dict.fromkeys(columns))
                told = ", ".join(titles[:MOST_NAMED]) + " and more" * (len(titles) > MOST_NAMED)
                assert f"not in this run; {each.claim.command} measures {told}" in each.reason
                for dataset in finding.datasets:
                    assert all(subject.dataset in each.reason for subject in needed_by(finding, dataset))
    lacking = {key: value for key, value in ROW.items() if "orc" not in key[1]}
    found = of("f3-second", F3, run_of(lacking))
    assert (found.verdict, found.ours) == (FindingVerdict.NOT_TESTABLE, ())
    assert "events: no figure of orc[engine=pyarrow,codec=none] (not in this run)" in found.reason
    assert found.claim.command in found.reason
    few = of("f3-second", F3, run_of(ROW, rounds=2))
    assert few.verdict is FindingVerdict.OPEN
    assert "2 rounds" in few.reason


def test_fallbacks_give_no_figure_for_a_claim() -> None:
    found = of("f3-second", F3, run_of(ROW, fallback="read-all"))
    assert found.verdict is FindingVerdict.NOT_TESTABLE
    assert "vortex[engine=vortex-data,library_cache=off]" in found.reason
    assert "(no native call: read-all)" in found.reason


@pytest.mark.rule(17)
def test_a_wrong_answer_supports_no_claim() -> None:
    """A cell with a wrong answer has no rank, whatever times its other rounds had."""
    wrong = Failure(kind="mismatch", reason="row 3")
    some = run_of({(ONE, F3.variants["f3"], "events"): 1.0}, round=8, figures={}, failure=wrong)
    found = of("f3-second", F3, both(run_of(ROW), some))
    assert found.verdict is FindingVerdict.NOT_TESTABLE
    assert "no figure of f3[codec=none] (wrong answer in a counted round)" in found.reason


def test_answers_from_the_librarys_memory_are_named() -> None:
    """Another measurement would not change this, so the reason "not in this run" would be wrong."""
    quick = {key: value for key, value in ROW.items() if key[1].startswith(("vortex", "parquet"))}
    rest = {key: value for key, value in ROW.items() if key not in quick}
    run = both(run_of(rest), run_of(quick, cached=True))
    nothing = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    for found in (of("f3-second", F3, run), of("f3-second", F3, nothing, run)):
        names = "vortex[engine=vortex-data,library_cache=off], parquet[engine=pyarrow,codec=none]"
        assert found.verdict is FindingVerdict.NOT_TESTABLE
        assert f"events: no figure of {names} (answered from the library's memory)" in found.reason
        told = f"{found.claim.command} measures take 1 row time of the other formats, which may have no figure either"
        assert told in found.reason


def test_where_all_data_sets_are_left_out_for_another_reason_no_command_is_named() -> None:
    cells = {
        (TEN, variant, dataset): 1.0
        for variant in (FULL_ZIP, MINI_BLOCK)
        for dataset in ("values[bytes=1024]", "values[bytes=4096]")
    }
    found = of("full-zip-for-large", LANCE, run_of(cells, cached=True))
    assert found.verdict is FindingVerdict.NOT_TESTABLE
    assert "library's memory" in found.reason
    assert found.claim.command not in found.reason


def test_missing_libraries_are_named() -> None:
    failed = Failure(kind="not installed", reason="needs pylance")
    lance_cell = {key: value for key, value in ROW.items() if key[1].startswith("lance")}
    rest = {key: value for key, value in ROW.items() if key not in lance_cell}
    none = tuple(changed(sample, figures={}, failure=failed) for sample in run_of(lance_cell).samples)
    found = of("lance-first", F3, replace(run_of(rest), samples=(*run_of(rest).samples, *none)))
    assert "events: no figure of lance[engine=pylance] (not installed)" in found.reason


READ = {
    ("read", F3.variants["f3"], "core"): 50.0,
    ("read", F3.variants["parquet"], "core"): 100.0,
    ("read", F3.variants["orc"], "core"): 200.0,
}


@pytest.mark.parametrize(
    "told", [{"suite": "training", "rows": 25_000}, {"machine": "lab-2"}], ids=["other rows", "another machine"]
)
@pytest.mark.parametrize("first", [True, False], ids=["before", "behind"])
def test_other_row_counts_or_machines_are_not_compared(told: dict[str, Any], first: bool) -> None:
    """Parquet reads a fortieth of the rows in 4 ms. This does not allow a comparison with F3's read of all rows."""
    whole = run_of(READ)
    few = run_of({("read", F3.variants["parquet"], "core"): 4.0}, **told)
    found = of("reads-faster", F3, both(few, whole) if first else both(whole, few))
    assert found.verdict is FindingVerdict.HOLDS
    assert found.ours == ("core: f3[codec=none] 50.2 ms, parquet[engine=pyarrow,codec=none] 100 ms",)


def test_a_verdict_on_one_of_several_machines_says_which() -> None:
    run = both(run_of(READ), run_of({("read", F3.variants["parquet"], "core"): 4.0}, machine="lab-2"))
    assert "(read time, cache warm, target arrow, machine lab-1)" in markdown([run], "f3")


def test_files_are_compared_with_those_of_the_default_call() -> None:
    """Parquet without a codec does not support the claim, because the source names block compression as the cause."""
    megabytes = {F3.variants["f3"]: 19, F3.variants["parquet"]: 19.2, F3.variants["parquet-usual"]: 15}
    samples = tuple(
        changed(sample, operation=operation, figures={"wall_ns": 10**9, "size_bytes": int(value * 1e6)}, saw_all=True)
        for variant, value in megabytes.items()
        for operation in ("save", "read")
        for sample in run_of({("save", variant, "core"): 1.0}).samples
    )
    found = of("larger-than-parquet", F3, replace(run_of({}), samples=samples))
    assert found.verdict is FindingVerdict.HOLDS, found.reason
    assert found.ours == ("core: parquet[engine=pyarrow,codec=snappy] 15.0 MB, f3[codec=none] 19.0 MB",)


LANCE_RATES = {
    "full-zip-for-large": {"full-zip": "256 bytes: full-zip", "mini-block": "256 bytes: mini-block"},
    "alike-when-small": {"full-zip": "16 bytes: full-zip", "mini-block": "16 bytes: mini-block"},
    "scan-keeps-up": {"lance-2.1": "code: Lance 2.1", "tuned": "code: Parquet at best"},
}
"""For each claim, the published rates of the variants that we measure."""


@pytest.mark.parametrize("key", LANCE_RATES)
def test_the_figures_of_lances_authors_support_their_claims(key: str) -> None:
    rates = {row["what"]: row["value"] for row in published_rows("lance.csv") if row["claim"] == key}
    claim = next(claim for claim in LANCE.claims if claim.key == key)
    assert claim.finding is not None
    operation = claim.finding.pairs[0].lower.column.operation
    cells = {
        (operation, LANCE.variants[variant], dataset): 1e6 / float(rates[what])
        for variant, what in LANCE_RATES[key].items()
        for dataset in claim.finding.datasets
    }
    found = of(key, LANCE, run_of(cells))
    assert found.verdict is FindingVerdict.HOLDS, found.reason


def test_among_several_runs_the_one_with_the_figures_counts() -> None:
    nothing = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    assert of("f3-second", F3, nothing, run_of(ROW)).verdict is FindingVerdict.HOLDS


@pytest.mark.parametrize(("name", "source"), SOURCES.items(), ids=SOURCES)
def test_every_claim_has_published_figures_and_every_figure_a_claim(name: str, source: Publication) -> None:
    assert set(published(name)) == {claim.key for claim in source.claims}
    for row in published_rows(f"{name.replace('-', '_')}.csv"):
        assert all(row[name] for name in ("claim", "source", "what", "value")), row
    for row in published_rows(f"{name.replace('-', '_')}_claims.csv"):
        assert row["relation"] in ("below", "at most", "within") or row["untestable"], row
    for claim in source.claims:
        assert (claim.finding is None) == bool(claim.untestable), claim.key
        assert bool(claim.command) == (claim.finding is not None), claim.key


def test_terminal_and_markdown_have_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(ROW)
    for name, source in SOURCES.items():
        show([run], name, Console(width=100))
        out = " ".join(capsys.readouterr().out.split())
        text = markdown([run], name)
        assert f"--against {name} --markdown" in text
        for claim in source.claims:
            assert claim.statement in out
            assert f"| {claim.statement} |" in text
    slower = "vortex[engine=vortex-data,library_cache=off] 2.01 ms"
    told = f"f3[codec=none] 1.00 ms, {slower} (take 1 row time, cache warm, target arrow)"
    show([run], "f3", Console(width=100))
    assert f"ours: events: {told}" in " ".join(capsys.readouterr().out.split())
    assert f"| events: {told} |" in markdown([run], "f3")
