"""A varied property becomes data sets or operations that are otherwise equal."""

from __future__ import annotations

import pytest

from bench_runner.errors import PlanError
from bench_runner.plan.planning import make_plan
from bench_runner.plan.sweeping import swept
from bench_runner.request import Over, Request
from bench_runner.suites import SUITES
from bench_runner.suites.sweep import TRAITS
from data_generator.catalogue import CATALOGUE, resolve


def asked(trait: str, *points: str, suite: str = "sweep", **request: object) -> Request:
    return swept([SUITES[suite]], Request(over=Over(trait, points), **request))  # type: ignore[arg-type]


def test_a_trait_of_the_data_becomes_data_sets_with_the_operations_of_the_suite() -> None:
    made = asked("nulls", "0", "0.5", rows=5_000)
    assert made.datasets == ("traits[nulls=0]", "traits[nulls=0.5]")
    assert made.operations == SUITES["sweep"].operations_over_data
    plan = make_plan([SUITES["sweep"]], Request(over=Over("nulls", ("0", "0.5")), rows=5_000, formats=("lance",)))
    assert [dataset.parameters["nulls"] for dataset in plan.datasets.values()] == ["0", "0.5"]
    (others,) = {tuple(sorted({**each.parameters, "nulls": ""}.items())) for each in plan.datasets.values()}
    assert ("rows", "5000") in others


def test_a_trait_of_the_use_becomes_operations_on_one_table() -> None:
    made = asked("rows_taken", "1", "50")
    assert made.datasets == ("traits",)
    assert made.operations == ("read", "take[rows=1,handle=kept]", "take[rows=50,handle=kept]")
    assert asked("selectivity", "0.10", "0.5").operations[1] == "scan[selectivity=0.1,kind=range]"
    assert asked("columns_read").datasets == ("traits[columns=32,rows=200000]",)
    assert asked("rows_taken", datasets=("events",)).datasets == ("events",)
    assert asked("rows_taken", suite="access").datasets == ()


def test_a_setting_becomes_variants_on_the_same_data() -> None:
    made = asked("row_group_rows", "1000", "50000")
    assert made.formats == tuple(
        f"parquet[engine=pyarrow,codec={codec},row_group_rows={rows}]"
        for codec in ("none", "zstd,level=1")
        for rows in ("1000", "50000")
    )
    assert (made.datasets, made.operations) == ((), SUITES["sweep"].operations_over_settings)
    plan = make_plan([SUITES["sweep"]], Request(over=Over("files", ("2", "5")), rows=5_000))
    ran = {chain.variant for chain in plan.chains if not chain.is_raw_io}
    assert ran == {
        f"parquet[engine=pyarrow,codec={codec},files={n}]" for codec in ("none", "zstd,level=1") for n in (2, 5)
    }
    assert asked("files", suite="tabular").operations == ()
    with pytest.raises(PlanError, match="already chooses the variants"):
        asked("files", formats=("csv",))


def test_other_suites_and_data_sets_can_be_varied_too() -> None:
    assert asked("distinct", "10", "20", suite="tabular").operations == ()
    assert asked("bytes", "10", "20", datasets=("blobs",)).datasets == ("blobs[bytes=10]", "blobs[bytes=20]")
    made = asked("nulls", "0", "0.5", datasets=("traits[width=32]",))
    assert made.datasets == ("traits[width=32,nulls=0]", "traits[width=32,nulls=0.5]")


def test_usual_values_for_which_a_table_has_too_few_rows_are_left_out() -> None:
    assert len(asked("distinct").datasets) == len(TRAITS["distinct"].points)
    assert asked("distinct", rows=2_000).datasets == tuple(f"traits[distinct={n}]" for n in (10, 100, 1000))
    assert asked("rows_taken", rows=50).operations == ("read", *(f"take[rows={n},handle=kept]" for n in (1, 10)))


@pytest.mark.parametrize("trait", TRAITS)
def test_every_trait_can_be_had_at_each_of_its_usual_values(trait: str) -> None:
    """Resolving a data set checks its parameters without generating it."""
    made = asked(trait)
    for name in made.datasets:
        base, _, inside = name.partition("[")
        parameters = dict(part.split("=") for part in inside.removesuffix("]").split(",") if part)
        assert resolve(base, parameters).rows > 0
    points = len(made.formats) / len(TRAITS[trait].variants) if TRAITS[trait].variants else len(made.datasets)
    assert 3 <= max(points, len(made.operations) - 1) <= 12
    assert (
        TRAITS[trait].operation
        or TRAITS[trait].variants
        or trait in {parameter.name for parameter in CATALOGUE["traits"].parameters}
    )


def test_the_suite_sweeps_with_at_most_twelve_variants() -> None:
    assert len(SUITES["sweep"].variants.spelled) <= 12
    plan = make_plan([SUITES["sweep"]], Request(rows=2_000))
    assert {chain.dataset for chain in plan.chains} == {"traits"}
    assert {chain.conditions.track for chain in plan.chains} == {"choice"}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"over": Over("nuls")}, r"'nuls' is not a trait .*\(did you mean 'nulls'\?\)\.\n?.*There are distinct"),
        ({"over": Over("nulls", ("0",))}, r"nulls has 1 distinct value .given: 0.; .* at least 2\.\n.*over=\{'nulls'"),
        ({"over": Over("nulls", ("0", "0.0"))}, "nulls has 1 distinct value .given: 0, 0.0."),
        ({"over": Over("rows"), "rows": 10}, "Omit rows"),
        ({"over": Over("rows_taken"), "operations": ("read",)}, "Omit operations"),
        ({"over": Over("bytes"), "datasets": ("blobs",)}, "no default values for the data set blobs"),
        (
            {"over": Over("width"), "datasets": ("blobs",)},
            r"'width' is not a trait of the data set blobs.*There are bytes",
        ),
        ({"over": Over("nulls"), "datasets": ("^tra",)}, "without patterns"),
        ({"over": Over("rows_taken", ("1", "x"))}, "rows must be a number"),
    ],
)
def test_a_trait_that_cannot_be_varied_is_refused_with_what_to_do(request_: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        swept([SUITES["sweep"]], Request(**request_))  # type: ignore[arg-type]


def test_only_a_single_suite_of_tables_can_vary_a_trait() -> None:
    for names in (["tabular", "sweep"], ["image"]):
        with pytest.raises(PlanError, match="exactly one suite, which must measure tables"):
            swept([SUITES[name] for name in names], Request(over=Over("nulls")))
