"""Tables: fidelity, whether there are enough rounds for a verdict, and times too short for the clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench_runner.results.records import RunInfo, Sample, changed
from bench_runner.variants import variant_of
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, Role
from reports.analysis.tables import Table, tables, value_text
from reports.analysis.units import MILLISECONDS, number_text
from reports.analysis.words import notes
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


def busy_samples() -> list[Sample]:
    """Return saves and reads of three variants. Only one variant has counted times of reading; sizes always count."""
    return [
        make_sample(
            variant=name,
            operation=operation,
            round=number,
            figures={"wall_ns": place * 10**6, **({"size_bytes": place * 10**6} if operation == "save" else {})},
            unsettled=operation == "read" and name != "feather",
        )
        for place, name in enumerate(("feather", "csv", "orc"), 1)
        for number in range(1, 6)
        for operation in ("save", "read")
    ]


def test_with_few_counted_variants_nothing_is_ranked() -> None:
    """The only counted variant is not the best of three."""
    samples = busy_samples()
    table = table_of(*samples)
    assert table.counted(READ_TIME).too_few
    assert not table.ranks(READ_TIME)
    for column, mark in ((READ_TIME, ""), (SAVE_TIME, "*"), (SIZE, "*")):
        assert table.mark(column, variant_of("feather")) == mark
    run = replace(make_run(datasets=()), samples=tuple(samples), info=RunInfo(), fidelity=())
    assert "no best is marked, because most variants have no counted figure: read time (1 of 3)" in list(
        notes(run, table)
    )


def test_cached_and_wrong_cells_are_not_counted_as_rankable() -> None:
    samples = [changed(each, unsettled=False, cached=each.variant == "feather") for each in busy_samples()]
    counted = table_of(*samples).counted(READ_TIME)
    assert (counted.having, counted.measured) == (2, 2)
