"""The thesis on near storage compared with a run: tables 8.1 to 8.3, findings, and errors of the thesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from bench_runner.results.records import Conditions, Run, Sample, changed
from reports.sources.claims import SOURCES, Judged, judged
from reports.sources.claims_shown import markdown
from reports.sources.judgement import FindingVerdict
from reports.sources.near_storage_tables import published, tables
from tests.reports.factory import make_run, make_sample

SOURCE = SOURCES["near-storage"]
V1, V1_KEPT, V2, UNPRUNED, PRUNED = (
    SOURCE.variants[name] for name in ("V1", "V1, footers kept", "V2", "unpruned", "pruned")
)
LOCAL = Conditions(target="arrow", track="access")
FAR = Conditions(target="arrow", track="access", network="1000mbit", service="warm")
STORED_BYTES = 2_000_000_000

Cells = Mapping[tuple[str, str], float]
"""(variant, operation) -> GB/s."""


def run_of(rates: Cells, conditions: Conditions = LOCAL, *, rounds: int = 5, saved: bool = True) -> Run:
    """Return a run whose queries reach these rates on 2 GB, slightly less in each round."""

    def samples() -> Iterator[Sample]:
        for number in range(1, rounds + 1):
            about = {"suite": "near-storage", "dataset": "snowset", "conditions": conditions, "round": number}
            for variant in dict.fromkeys(variant for variant, _ in rates) if saved else ():
                figures = {"wall_ns": 10**9, "size_bytes": STORED_BYTES}
                yield make_sample(**about, variant=variant, operation="save", figures=figures, fidelity=None)
                yield make_sample(**about, variant=variant, operation="read", figures={"wall_ns": 2 * 10**9})
            for (variant, operation), rate in rates.items():
                wall_ns = int(STORED_BYTES / rate * (1 + number / 10_000))
                figures = {"wall_ns": wall_ns, "cpu_ns": wall_ns}
                yield make_sample(**about, variant=variant, operation=operation, figures=figures)

    return replace(make_run(datasets=("eq",), tracks=("plain",), rounds=1), samples=tuple(samples()))


def theirs(
    change: Callable[[str, float, float], float] = lambda way, share, rate: rate,
) -> dict[tuple[str, str], float]:
    """Return the thesis's measurements in the form of our rates."""
    ways = {"V1": V1, "V2": V2}
    return {
        (ways[name], f"query[groups={point.percent / 100}]"): change(name, point.percent / 100, point.gb_per_s)
        for name, points in published().items()
        for point in points
    }


def of(key: str, run: Run) -> Judged:
    return next(each for each in judged([run], SOURCE) if each.claim.key == key)


TESTED = ("selective-v1", "selective-v2", "falls", "half-is-all", "v2-faster", "nothing-matches")
"""Findings that depend only on table 8.1 of the thesis."""


@pytest.mark.parametrize("key", TESTED)
def test_the_thesiss_own_figures_support_its_findings(key: str) -> None:
    found = of(key, run_of(theirs()))
    assert found.verdict is FindingVerdict.HOLDS, found.reason
    assert found.published


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("selective-v1", lambda way, share, rate: rate / 2 if (way, share) == ("V1", 0.01) else rate),
        ("selective-v2", lambda way, share, rate: rate / 2 if (way, share) == ("V2", 0.01) else rate),
        ("falls", lambda way, share, rate: 1.5 if (way, share) == ("V2", 0.1) else rate),
        ("half-is-all", lambda way, share, rate: 2.5 if share == 0.25 else rate),
        ("v2-faster", lambda way, share, rate: 1.0 if (way, share) == ("V2", 0.5) else rate),
        ("nothing-matches", lambda way, share, rate: 200 if share == 0 else rate),
    ],
)
def test_a_figure_that_contradicts_a_finding_is_seen(key: str, change: Callable[[str, float, float], float]) -> None:
    found = of(key, run_of(theirs(change)))
    assert found.verdict is FindingVerdict.DOES_NOT
    assert found.ours
    others = set(TESTED) - {key, "falls", "v2-faster", "nothing-matches"}
    assert all(of(other, run_of(theirs(change))).verdict is FindingVerdict.HOLDS for other in others - {key})


def test_techniques_are_told_apart() -> None:
    rates = {
        (UNPRUNED, "query[groups=0.01]"): 1.0,
        (PRUNED, "query[groups=0.01]"): 40.0,
        (PRUNED, "query[groups=0.01,values=100]"): 40.0,
        (V1_KEPT, "query[groups=0.01,values=100]"): 38.0,
        (V1_KEPT, "query[groups=0.01,values=100,columns=1]"): 80.0,
        (V1_KEPT, "aggregate[groups=0.01,values=100]"): 78.0,
    }
    for key in ("row-groups", "row-filter", "column-projection", "aggregation"):
        assert of(key, run_of(rates)).verdict is FindingVerdict.HOLDS, key
    costly = {**rates, (V1_KEPT, "query[groups=0.01,values=100]"): 30.0}
    assert of("row-filter", run_of(costly)).verdict is FindingVerdict.DOES_NOT
    slow = {**rates, (V1_KEPT, "query[groups=0.01,values=100,columns=1]"): 50.0}
    assert of("column-projection", run_of(slow)).verdict is FindingVerdict.DOES_NOT
    # The aggregate takes twice as long as reading its column, which is too long, although all 93 columns take even
    # longer.
    dear = {**rates, (V1_KEPT, "aggregate[groups=0.01,values=100]"): 40.0}
    assert of("aggregation", run_of(dear)).verdict is FindingVerdict.DOES_NOT


def test_table_8_1_has_our_figures_in_their_places() -> None:
    run = run_of({**theirs(lambda way, share, rate: 2 * rate), (V1_KEPT, "query[groups=0.0]"): 500.0})
    table = tables([run])[0]
    assert (
        table.title
        == "table 8.1, throughput in GB/s (ours: snowset, clustered, track access, cache warm, target arrow)"
    )
    assert table.head[1:] == ("thesis: V1", "thesis: V2", "ours: V1", "ours: V1, footers kept", "ours: V2")
    assert table.texts[0] == ["100 %", "1.62", "1.72", "3.25 ±0%", "-", "3.43 ±0%"]
    assert table.texts[-1] == ["0 %", "113", "1,656", "225 ±0%", "500 ±0%", "3,311 ±0%"]
    (cell,) = {entry.cell for entry in table.lines[0][3:4]}
    assert (cell.variant, cell.operation) == (V1, "query[groups=1.0]")


def test_tables_8_2_and_8_3_are_made_of_our_curves_by_the_same_fit() -> None:
    run = run_of(theirs(lambda way, share, rate: 2 * rate))
    retrieval, parameters, errors = tables([run])[1:4]
    rows = {(line[0], line[1]): line[2:] for line in retrieval.texts}
    assert rows["Snowset", "thesis: V1"][:3] == ["54.673", "54.6", "25.9"]
    assert rows["Snowset", "ours: V1"][:3] == ["-", "109", "51.8"]
    assert rows["Thesios", "ours: V2"][-1] == "17.84"
    curves = {line[0]: line[1:] for line in parameters.texts}
    assert curves["thesis: V1"] == ["1.539 ± 0.072", "111 ± 0.13", "1.008 ± 0.0045", "1.836 ± 0.038"]
    assert curves["ours: V1"][0].startswith("3.07")
    offs = {(line[0], line[1]): line[4] for line in errors.texts}
    assert offs["thesis: V1", "25 %"] == "+7.59 %"
    assert offs["thesis: V2", "100 %"] == "-6.54 %"
    assert offs["ours: V1", "25 %"] == "+7.59 %"


def test_a_mix_has_no_rate_where_its_slowest_queries_were_not_asked() -> None:
    """The slowest queries decide the rate. A curve through the other queries does not include them."""
    some = {key: rate for key, rate in theirs().items() if key[1] != "query[groups=1.0]"}
    retrieval, parameters = tables([run_of(some)])[1:3]
    assert {line[1] for line in retrieval.texts} == {"thesis: V1", "thesis: V2"}
    assert "ours: V1" in {line[0] for line in parameters.texts}


def test_too_few_selectivities_make_no_curve_and_say_so() -> None:
    few = {key: rate for key, rate in theirs().items() if key[0] == V1 and "0.01" not in key[1] and "0.5" not in key[1]}
    throughput, *others = tables([run_of(few)])
    assert "no curve: a curve needs at least 5 different selectivities (got 4)" in throughput.title
    assert [table.title.partition(",")[0] for table in others] == ["section 3.1"]


def test_the_cost_of_storing_includes_replicas() -> None:
    """The figures are those of the thesis, with the amount of storage that it meant and with two copies."""
    costs = {line[0]: line[1:] for line in tables([run_of(theirs())])[-1].texts}
    assert costs["own machines, one copy"] == ["1,543", "1,966,677", "54 %"]
    assert costs["own machines, erasure coding 10 + 4"][0::2] == ["2,160", "76 %"]
    assert costs["own machines, two replicas"][2] == "109 %"


def test_measurements_over_a_network_have_separate_tables() -> None:
    near, far = run_of(theirs()), run_of(theirs(lambda way, share, rate: rate / 10), FAR)
    found = tables([replace(near, samples=(*near.samples, *far.samples))])
    titles = [table.title for table in found if table.title.startswith("table 8.1")]
    assert len(titles) == 2
    assert titles[1].endswith("target arrow, loopback at 1,000 Mbit/s, warm service)")


def test_two_runs_of_one_place_are_named() -> None:
    """Everything that was measured is included and named."""
    runs = [replace(run_of(theirs()), info=changed(run_of(theirs()).info, id=name)) for name in ("first", "second")]
    titles = [table.title for table in tables(runs) if table.title.startswith("table 8.1")]
    assert [title.rpartition(", ")[2] for title in titles] == ["run first)", "run second)"]
    (alone,) = (table.title for table in tables(runs[:1]) if table.title.startswith("table 8.1"))
    assert "run first" not in alone


def test_the_nearest_place_comes_first() -> None:
    far, near = run_of(theirs(), FAR), run_of(theirs())
    titles = [table.title for table in tables([far, near]) if table.title.startswith("table 8.1")]
    assert ["Mbit/s" in title for title in titles] == [False, True]


def test_two_machines_have_separate_tables() -> None:
    near, other = run_of(theirs()), run_of(theirs(lambda way, share, rate: rate / 10))
    moved = tuple(changed(sample, machine="lab-2") for sample in other.samples)
    found = tables([replace(near, samples=(*near.samples, *moved))])
    throughput = [table for table in found if table.title.startswith("table 8.1")]
    assert [table.title.rpartition(", ")[2] for table in throughput] == ["machine lab-1)", "machine lab-2)"]
    assert throughput[0].texts[0] != throughput[1].texts[0]


def test_without_a_save_the_size_is_unknown() -> None:
    assert "not in this run" in tables([run_of(theirs(), saved=False)])[0].title


def test_every_share_of_the_thesis_is_asked_for() -> None:
    (claim,) = (each for each in SOURCE.claims if each.key == "v2-faster")
    assert claim.finding is not None
    asked = {pair.lower.column.operation for pair in claim.finding.pairs} | {"query[groups=0.0]"}
    assert {f"query[groups={point.percent / 100}]" for point in published()["V1"]} == asked


def test_the_page_has_findings_tables_and_slips() -> None:
    text = markdown([run_of(theirs())], "near-storage")
    for part in ("## table 8.1", "## table 8.2", "## table 8.3", "172,500,000 GB x 1.4", "it is 240 MB", "lacks / 12"):
        assert part in text, part


@pytest.mark.parametrize("key", ["row-filter", "aggregation", "less-cpu"])
def test_the_cpu_time_of_the_client_alone_supports_no_claim(key: str) -> None:
    """Over a network, services do part of the work. A variant that leaves all work to them would seem to need no CPU
    time."""
    operations = ("query[groups=0.1]", "query[groups=0.01,values=100]", "query[groups=0.01,values=100,columns=1]")
    cells = [*operations, "aggregate[groups=0.01,values=100]"]
    rates = {(way, operation): 1.0 for way in (V1, V2, V1_KEPT, PRUNED) for operation in cells}
    assert of(key, run_of(rates)).verdict is not FindingVerdict.NOT_TESTABLE
    served = of(key, run_of(rates, changed(LOCAL, network="loopback", service="warm")))
    assert served.verdict is FindingVerdict.NOT_TESTABLE
    assert "the client alone" in served.reason
