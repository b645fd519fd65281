"""A quick round measures a listed part of each suite. Cells that the user names are measured in any case."""

from __future__ import annotations

import pytest

from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES
from bench_runner.suites.suite import Suite

MOST_CELLS = 240
"""Maximum number of cells.

At half a second of CPU time per cell, a round takes at most two minutes on two idle cores.
"""


def cells(*suites: str, **request: object) -> list[str]:
    made = make_plan([SUITES[name] for name in suites], Request(**{"quick": True, **request}))  # type: ignore[arg-type]
    return [chain.label(operation) for chain in made.chains for operation in chain.operations]


@pytest.mark.parametrize("name", SUITES)
def test_one_quick_round_has_few_cells_and_a_reason_for_what_is_missing(name: str) -> None:
    suite = SUITES[name]
    assert suite.quick.reason
    quick, whole = (set(cells(name, quick=quick)) for quick in (True, False))
    assert 0 < sum(len(cells(each)) for each in (name, *suite.together)) <= MOST_CELLS
    # Quick cells are cells of the whole suite, except for the number of rows and operations that run on request only.
    known = {*suite.operations, *suite.operations_on_request, *suite.quick.operations}
    assert {each.split("/")[1] for each in quick} <= known
    assert {each.split("/", 2)[2] for each in quick} <= {each.split("/", 2)[2] for each in whole}


@pytest.mark.parametrize("name", SUITES)
def test_what_a_quick_round_leaves_out_is_of_its_suite(name: str) -> None:
    suite, quick = SUITES[name], SUITES[name].quick
    assert set(quick.datasets) <= set(suite.datasets)
    assert set(quick.networks) <= set(suite.networks)
    assert set(quick.threads) <= set(suite.threads)
    assert set(quick.without) <= set(suite.variants.spelled)
    assert quick.rows is None or quick.rows <= 50_000


def test_quick_suites_of_the_same_data_can_run_together() -> None:
    """Within a run, a data set has only one number of rows."""
    of_tables = ("tabular", "compression", "engines", "choice")
    for together in (of_tables, ("access", "writing"), ("image", "training-images")):
        assert len({SUITES[name].quick.rows for name in together}) == 1
        assert cells(*together)


@pytest.mark.parametrize(
    ("asked", "where", "expected"),
    [
        ({"datasets": ("^int$",)}, "tabular", "save/int/"),
        ({"datasets": ("values[bytes=1024]",)}, "encodings", "save/values[bytes=1024]/"),
        ({"datasets": ("vectors",)}, "writing", "save/vectors/"),
        ({"operations": ("query[groups=0.5]",)}, "near-storage", "query[groups=0.5]/snowset/"),
        (
            {"formats": ("row_group_rows=131072",)},
            "writing",
            "save/events/parquet[engine=pyarrow,codec=none,row_group_rows=131072]",
        ),
    ],
)
def test_what_the_user_names_is_measured(asked: dict[str, object], where: str, expected: str) -> None:
    assert not any(f"/{expected}" in each for each in cells(where))
    assert any(f"/{expected}" in each for each in cells(where, **asked))


@pytest.mark.parametrize(("option", "given"), [("networks", ("1000mbit",)), ("threads", "1")])
def test_a_condition_that_the_user_names_is_measured(option: str, given: object) -> None:
    suite: Suite = SUITES["near-storage" if option == "networks" else "engines"]
    made = make_plan([suite], Request(quick=True, **{option: given}))  # type: ignore[arg-type]
    found = {chain.conditions.network if option == "networks" else chain.conditions.threads for chain in made.chains}
    assert found == {"1000mbit" if option == "networks" else "1"}


@pytest.mark.parametrize(
    ("suite", "asked", "rows"),
    [
        ("tabular", {"quick": False}, 1_000_000),
        ("tabular", {}, 20_000),
        ("tabular", {"rows": 700}, 700),
        ("access", {}, 50_000),
        ("documents", {}, 5_000),
    ],
)
def test_rows_are_few_unless_the_user_sets_their_number(suite: str, asked: dict[str, object], rows: int) -> None:
    made = make_plan([SUITES[suite]], Request(**{"quick": True, **asked}))  # type: ignore[arg-type]
    assert {dataset.rows for dataset in made.datasets.values()} == {rows}
