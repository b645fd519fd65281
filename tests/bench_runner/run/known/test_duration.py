"""The expected duration of a run, as a range and by parts, estimated from earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench_runner.plan.chain import Chain
from bench_runner.run.known.costs import Cost, Costs, KnownCosts
from bench_runner.run.known.duration import Length, expected_length
from bench_runner.run.options import Options
from format_bench.length_text import clock_text, doing_text, length_text
from tests.bench_runner.run.invented import SECOND, chain

CHAINS = [chain("csv[engine=pandas]"), chain("excel[engine=x]"), chain("raw-io[engine=x]")]


def plan(chains: Sequence[Chain], rows: int = 1_000) -> Any:
    return SimpleNamespace(chains=chains, datasets={"eq": SimpleNamespace(rows=rows)})


def known(*, here: bool = True) -> KnownCosts:
    costs = Costs()
    for each, seconds in zip(CHAINS, (1, 20, 0), strict=True):
        for operation in ("save", "read"):
            name = f"{operation} {each.variant} warm default pandas eq"
            costs.cells[name] = [Cost(rows=1_000, timed_ns=seconds * SECOND, verified_ns=0, fixed_ns=SECOND // 10)]
    return KnownCosts(costs, Costs()) if here else KnownCosts(Costs(), costs)


def test_rounds_are_those_that_the_run_would_take() -> None:
    found = expected_length(plan(CHAINS), Options(), known())
    # CSV and raw I/O get 9 rounds, or 7 with narrow intervals. Operations over 10 s get 3.
    csv_s, excel_s, raw_s = 2.2, 40.2, 0.2
    assert found.by_format == pytest.approx({"excel": 3 * excel_s, "csv": 9 * csv_s, "raw-io": 9 * raw_s})
    assert list(found.by_format) == ["excel", "csv", "raw-io"]
    assert found.low_s == pytest.approx(0.85 * (8 + 3 * excel_s + 7 * (csv_s + raw_s)))
    assert found.high_s == pytest.approx(1.2 * (8 + found.middle_s))
    assert (found.here, found.unknown) == (True, ())


def test_rounds_that_were_asked_for_are_taken() -> None:
    found = expected_length(plan(CHAINS[:1]), Options(rounds=4), known())
    assert found.middle_s == pytest.approx(4 * 2.2)
    assert expected_length(plan(CHAINS[:1]), Options(quick=True), known()).middle_s == pytest.approx(2.2)


def test_large_tables_have_a_pilot_round_too() -> None:
    found = expected_length(plan(CHAINS[:1], rows=100_000), Options(rounds=1), known())
    assert found.middle_s == pytest.approx(200.2 + 2 * 20 + 0.2)


def test_other_machines_give_a_wide_range_and_unknown_variants_are_listed() -> None:
    found = expected_length(plan([*CHAINS, chain("new[engine=x]")]), Options(), known(here=False))
    assert not found.here
    assert found.high_s > 3 * found.low_s
    assert found.unknown == ("new[engine=x]",)
    assert expected_length(plan(CHAINS), Options(), KnownCosts()).by_format == {}


LENGTH = Length(1100, 1600, {"excel": 600.0, "xml": 300.0, "csv": 100.0, "orc": 90.0}, True, ())


def test_duration_comes_with_its_parts() -> None:
    told = "about 18:20 to 26:40 min by earlier runs here: excel 55%, xml 28%; without these 3:12 to 4:39 min"
    assert length_text(LENGTH) == told
    assert length_text(replace(LENGTH, here=False)).startswith("about 18:20 to 26:40 min by the reference run, on ")
    assert length_text(replace(LENGTH, unknown=("a", "b"))) == f"{told}; plus 2 variants of unknown duration"
    many = tuple(map(str, range(1 + len(LENGTH.by_format))))
    assert length_text(replace(LENGTH, unknown=many)).startswith("duration unknown: ")
    assert length_text(LENGTH, 600) == f"10:00 min, the budget (else {told})"
    assert "; without excel " in length_text(replace(LENGTH, by_format={"excel": 600.0, "csv": 50.0}))
    assert length_text(LENGTH, 6000) == told


def test_a_single_or_unknown_format_is_not_broken_down() -> None:
    assert length_text(replace(LENGTH, by_format={})) == ""
    assert length_text(replace(LENGTH, by_format={"csv": 9.0}, low_s=50, high_s=70)) == (
        "about 50 s to 1:10 min by earlier runs here"
    )


def test_what_is_done_now_and_how_long_the_rest_takes() -> None:
    assert doing_text("round 3", 130, "parquet on core") == "round 3, 2:10 min left, now: parquet on core"
    assert doing_text("data", None, "core") == "data: core"
    assert doing_text("data", None, "") == "data"


@pytest.mark.parametrize(("seconds", "text"), [(44.6, "45 s"), (59.7, "1:00 min"), (200, "3:20 min"), (3900, "1:05 h")])
def test_times_left_for_people(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
