"""Tables: fidelity, whether there are enough rounds for a verdict, and times too short for the clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench_runner.results.records import RunInfo, Sample
from reports.analysis.columns import Role
from reports.analysis.tables import Table, tables, value_text
from reports.analysis.units import MILLISECONDS, number_text
from tests.reports.factory import make_run, make_sample

TAKE = "take[rows=1,handle=kept]"


def table_of(*samples: Sample) -> Table:
    (table,) = tables(replace(make_run(datasets=()), samples=samples, info=RunInfo(), fidelity=()))
    return table


@pytest.mark.parametrize("lossy", ["save", "read"])
def test_one_lossy_operation_makes_a_row_lossy(lossy: str) -> None:
    samples = [
        make_sample(operation=operation, saw_all=True, fidelity="declared loss" if operation == lossy else "exact")
        for operation in ("save", "read")
    ]
    (row,) = table_of(*samples).rows
    assert row.fidelity == "declared loss"


@pytest.mark.parametrize(("most", "few"), [(5, False), (4, True)])
def test_there_are_verdicts_where_any_variant_has_rounds_enough(most: int, few: bool) -> None:
    rounds = {"feather": most, "csv": 2}
    samples = [
        make_sample(variant=name, round=number) for name, count in rounds.items() for number in range(1, count + 1)
    ]
    assert table_of(*samples).few_rounds == few


@pytest.mark.parametrize(("wall_ns", "told"), [(9_000, "<0.010"), (11_000, "0.011")])
def test_a_time_under_ten_empty_calls_is_none(wall_ns: int, told: str) -> None:
    table = table_of(make_sample(operation=TAKE, saw_all=False, figures={"wall_ns": wall_ns, "empty_ns": 1_000}))
    column = table.columns.find(TAKE, Role.TIME)
    assert column is not None
    assert value_text(table, table.rows[0], column, MILLISECONDS) == told


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0414, "0.041"),
        (0.9996, "1.00"),
        (2.654, "2.65"),
        (9.996, "10.0"),
        (81.84, "81.8"),
        (99.96, "100"),
        (5212, "5,212"),
    ],
)
def test_numbers_have_three_digits(number: float, text: str) -> None:
    assert number_text(number) == text
