"""The fidelity column names the reason if there is no verdict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from bench_runner.results.records import Failure
from bench_runner.results.statistics import CellSummary, Ratio
from bench_runner.variants import OperationName, operation_name_of, variant_of
from reports.analysis.tables import Row
from reports.analysis.units import MILLISECONDS
from reports.analysis.words import fidelity_text, multiple_text, rounds_text, sync_text
from tests.reports.analysis.test_tables import table_of
from tests.reports.factory import make_sample

REFUSED = Failure(kind="refused", reason="it answers no questions")


def told(stopped: dict[Failure, tuple[str, ...]], *, measured: bool, besides: tuple[str, ...] = ()) -> str:
    cells = {
        operation_name_of(name): SimpleNamespace(failures=(failure,))
        for failure, names in stopped.items()
        for name in names
    }
    cells |= {operation_name_of(name): SimpleNamespace(failures=()) for name in besides}
    failures = Row(variant_of("csv"), "csv", cast(dict[OperationName, CellSummary], cells)).failures
    return fidelity_text(cast(Row, SimpleNamespace(fidelity=None, failures=failures, measured=measured, cells=cells)))


def test_what_was_stopped_is_named_where_the_rest_was_measured() -> None:
    asked = {REFUSED: ("ask[query=q1]", "ask[query=q2]")}
    assert told(asked, measured=True) == "ask refused"
    assert told({**asked, Failure(kind="memory", reason="too large"): ("read",)}, measured=True) == "ask, read FAILED"
    assert told(asked, measured=True, besides=("ask[query=q3]", "read")) == "2 of 3 ask refused"
    repeated = Failure(kind="refused", reason=f"q2 was not asked: {REFUSED.reason}")
    assert told({REFUSED: ("ask[query=q1]",), repeated: ("ask[query=q2]",)}, measured=True) == "ask refused"
    assert told({REFUSED: ("save", "read")}, measured=False) == "refused"
    # On a busy machine the other operations may not be counted, but only this operation was refused.
    assert told({REFUSED: ("project[columns=4]",)}, measured=False, besides=("save", "read")) == "project refused"
    assert told({}, measured=False, besides=("save", "read")) == "-"
    assert told({}, measured=True) == "-"


def test_rounds_of_many_operations_are_told_as_a_range() -> None:
    def told_of(*rounds: int) -> str:
        cells = {operation_name_of(str(place)): SimpleNamespace(rounds=number) for place, number in enumerate(rounds)}
        return rounds_text(cast(Row, SimpleNamespace(cells=cells)), tuple(cells))

    assert told_of(7, 7, 7, 7, 7) == "7"
    assert told_of(7, 6) == "7/6"
    assert told_of(7, 6, 5, 0) == "0 to 7"
    assert told_of(0, 0) == "-"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((0.00321, "0.00321"), (0.0416, "0.0416"), (0.9, "0.900"), (0.9996, "1.00")),
        *((1.04, "1.0"), (9.4, "9.4"), (41.6, "42"), (1_240, "1.2k"), (12_400, "12k")),
    ],
)
def test_multiples_of_raw_io_are_readable_at_any_size(ratio: float, text: str) -> None:
    multiple = Ratio(ratio, None, None, 7, None)
    assert multiple_text(cast(CellSummary, SimpleNamespace(raw_io_multiple=multiple))) == text


def test_a_save_with_its_sync_is_the_median_of_the_sums_of_each_round() -> None:
    """The sum of both medians would be 101 ms."""
    both_ms = ((1, 100), (100, 1), (1, 150), (120, 1), (1, 200))
    saves = [
        make_sample(operation="save", round=number, figures={"wall_ns": save * 10**6, "sync_ns": sync * 10**6})
        for number, (save, sync) in enumerate(both_ms, 1)
    ]
    assert sync_text(table_of(*saves).rows[0], MILLISECONDS) == "121"
    alone = make_sample(operation="save", figures={"wall_ns": 10**6})
    assert sync_text(table_of(alone).rows[0], MILLISECONDS) == "-"
