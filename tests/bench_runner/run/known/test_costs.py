"""Durations are stored per machine, and scaled to the rows of a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_runner.results.information import MachineInfo
from bench_runner.results.records import Conditions, Sample, changed
from bench_runner.run.known import costs
from bench_runner.run.known.costs import Cost, Costs, KnownCosts
from tests.bench_runner.run.invented import chain
from tests.bench_runner.run.test_schedule import samples

MS = 10**6
WARM = Conditions()


def taken(variant: str, rows: int, wall_ms: int, dataset: str = "eq") -> list[Sample]:
    harness = {"verify_ns": 2 * MS, "prepare_ns": 50 * MS, "settle_ns": 9 * MS}
    return [
        changed(each, rows=rows, figures=each.figures | harness)
        for each in samples(chain(variant, dataset), (wall_ms * MS, 2 * wall_ms * MS), 1)
    ]


def test_the_median_of_a_run_is_scaled_by_rows_and_what_the_harness_takes_is_not() -> None:
    known = Costs()
    for wall_ms in (9, 10, 80):
        known.learn(taken("csv", 1_000, wall_ms))
    known.learn([*taken("csv", 1_000, 10), *taken("csv", 1_000, 12), *taken("csv", 1_000, 11)])
    assert known.expected("save", "csv", WARM, "eq", 4_000) == Cost(4_000, 44 * MS, 8 * MS, 59 * MS)
    assert known.expected("read", "csv", WARM, "eq", 1_000) == Cost(1_000, 22 * MS, 2 * MS, 59 * MS)


def test_between_two_sizes_it_is_their_line_and_beyond_them_the_nearest() -> None:
    known = Costs()
    known.learn([*taken("csv", 1_000, 10), *taken("csv", 3_000, 50)])
    found = {rows: known.expected("save", "csv", WARM, "eq", rows) for rows in (500, 2_000, 6_000)}
    timed_ms = {rows: each and each.timed_ns / MS for rows, each in found.items()}
    assert timed_ms == {500: 5, 2_000: 30, 6_000: 100}


def test_the_latest_of_a_size_counts_and_the_oldest_sizes_go() -> None:
    known = Costs()
    for rows in (1, 2, 3, 4, 5, 4):
        known.learn(taken("csv", rows, rows))
    assert [each.rows for each in known.cells["save csv warm default pandas eq"]] == [2, 3, 5, 4]


def test_costs_of_another_data_set_fill_gaps() -> None:
    known = Costs()
    known.learn([*taken("csv", 1_000, 10, "int"), *taken("csv", 1_000, 30, "str"), *taken("csv", 1_000, 20, "core")])
    found = known.expected("save", "csv", WARM, "mine", 2_000)
    assert found is not None
    assert found.timed_ns == 40 * MS
    assert known.expected("save", "orc", WARM, "mine", 2_000) is None
    assert known.expected("scan", "csv", WARM, "eq", 2_000) is None
    over_a_line = [
        changed(each, conditions=Conditions(network="100mbit", service="warm")) for each in taken("csv", 1_000, 999)
    ]
    known.learn(over_a_line)
    assert known.expected("save", "csv", WARM, "mine", 2_000) == found


def test_this_machine_is_asked_before_others() -> None:
    here, elsewhere = Costs(), Costs()
    here.learn(taken("csv", 1_000, 10))
    elsewhere.learn([*taken("csv", 1_000, 99), *taken("orc", 1_000, 5)])
    both = KnownCosts(here, elsewhere)
    found = {name: both.expected("save", chain(name), 1_000) for name in ("csv", "orc", "xml")}
    assert {name: each and (each.here, each.cost.timed_ns) for name, each in found.items()} == {
        "csv": (True, 10 * MS),
        "orc": (False, 5 * MS),
        "xml": None,
    }


def test_few_rows_of_this_machine_say_less_than_as_many_of_another() -> None:
    here, elsewhere = Costs(), Costs()
    here.learn(taken("csv", 1_000, 10))
    elsewhere.learn(taken("csv", 1_000_000, 300))
    known = KnownCosts(here, elsewhere)
    large = known.expected("save", chain("csv"), 1_000_000)
    small = known.expected("save", chain("csv"), 5_000)
    assert large
    assert small
    assert (large.here, large.cost.timed_ns) == (False, 300 * MS)
    assert (small.here, small.cost.timed_ns) == (True, 50 * MS)
    alone = KnownCosts(here).expected("save", chain("csv"), 1_000_000)
    assert alone
    assert alone.here


def test_every_run_adds_its_own_and_a_broken_file_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path))
    lab = MachineInfo(name="lab", cores=2)
    assert costs.of_machine(lab) == Costs()
    costs.add(lab, taken("csv", 1_000, 10))
    costs.add(lab, taken("orc", 1_000, 10))
    assert {name.partition(" warm")[0] for name in costs.of_machine(lab).cells} == {
        *("read csv", "read orc", "save csv", "save orc")
    }
    assert costs.of_machine(MachineInfo(name="lab", cores=4)) == Costs()
    (path,) = (tmp_path / "facts").iterdir()
    whole = path.read_bytes()
    for broken in (b"", whole[:-3], b"[" * 100_000, b"\xff", whole.replace(b"1000", b'"x"'), b" " * 17_000_000):
        path.write_bytes(broken)
        assert costs.of_machine(lab) == Costs()


def test_cold_reads_and_one_thread_are_known_apart() -> None:
    known = Costs()
    cold = Conditions(cache="cold (guest)")
    known.learn([changed(each, conditions=cold) for each in taken("csv", 1_000, 50)])
    known.learn(taken("csv", 1_000, 10))
    asked = {how: known.expected("save", "csv", how, "eq", 1_000) for how in (WARM, Conditions(cache="cold"))}
    assert [each and each.timed_ns for each in asked.values()] == [10 * MS, 50 * MS]
    assert known.expected("save", "csv", Conditions(threads="1"), "eq", 1_000) is None
