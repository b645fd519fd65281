"""Rule 15 as a whole: the pilot round, races, budgets, and the end of the rounds. Nothing is executed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_runner.errors import Failure
from bench_runner.machine import environment
from bench_runner.plan.chain import Chain, Plan
from bench_runner.results.records import Sample, changed
from bench_runner.run import budget, pilot, rounds
from bench_runner.run.known.costs import Cost, Costs, KnownCosts
from bench_runner.run.options import Options
from bench_runner.run.pilot import pilot_round
from bench_runner.run.prediction import Prediction, used_bytes, without_pilot
from bench_runner.run.session import Race, Session
from tests.bench_runner.run import invented
from tests.bench_runner.run.invented import SECOND, chain
from tests.bench_runner.run.test_schedule import prediction, samples

CHAINS = [chain("feather"), chain("orc"), chain("csv"), chain("raw-io")]


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """(variant, round, rows) of each requested execution. Each takes a second, without noise."""
    asked: list[tuple[str, int, int]] = []

    def execution(self: Session, of: Chain, *, rows: int, round_number: int, **given: object) -> list[Sample]:
        asked.append((of.variant, round_number, rows))
        return samples(of, (SECOND, SECOND), round_number)

    monkeypatch.setattr(Session, "execution", execution)
    monkeypatch.setattr(Session, "save_info", lambda self: None)
    monkeypatch.setattr("bench_runner.run.race.read_run", lambda folder: "the run so far")
    monkeypatch.setattr(pilot, "_too_much", lambda *given: None)
    return asked


def session(race: Race | None, *, rows: int = 50_000, **options: Any) -> Any:
    """Return the session of a run of CHAINS. Its budget starts when the clock is 0."""
    dataset = SimpleNamespace(name="eq", rows=rows, size_bytes=40 * rows)
    return invented.session(
        plan=Plan((), {}, tuple(CHAINS)), options=Options(**options), datasets={"eq": dataset}, race=race, began_ns=0
    )


def clock_says(monkeypatch: pytest.MonkeyPatch, now_ns: Callable[[], float]) -> None:
    for module in (rounds, budget):
        monkeypatch.setattr(module, "now_ns", now_ns)


def ran(executed: Sequence[tuple[str, int, int]], variant: str) -> list[int]:
    return [number for name, number, _ in executed if name == variant]


def test_a_race_drops_variants_that_cannot_win_and_ends_with_one(executed: list[tuple[str, int, int]]) -> None:
    everybody = ["feather", "orc", "csv"]
    looks = iter([*[everybody] * 4, ["feather", "orc"], ["feather", "orc"], ["feather"]])
    asked: list[object] = []

    def contending(run: object) -> list[str]:
        asked.append(run)
        return next(looks)

    predictions: dict[Chain, Prediction] = {each: prediction(1) for each in CHAINS}
    rounds.count_rounds(session(Race(contending, None)), predictions)
    assert asked == ["the run so far"] * 7
    assert ran(executed, "csv") == [1, 2, 3, 4, 5]
    assert ran(executed, "orc") == ran(executed, "feather") == ran(executed, "raw-io") == [*range(1, 10)]


def test_a_race_whose_budget_is_short_halves_the_field(
    executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight variants and raw I/O take 2 s each. In 50 s, fewer than three rounds of all fit, but five rounds of the
    leaders."""
    clock_says(monkeypatch, lambda: 2 * SECOND * len(executed))
    ranked = [f"v{number}" for number in range(8)]
    chains = [chain("raw-io"), *map(chain, ranked)]
    race = Race(lambda run: ranked, None)
    rounds.count_rounds(session(race, budget_s=50.0), {each: prediction(1) for each in chains})
    assert [ran(executed, each) for each in ["raw-io", *ranked[:4]]] == [
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
        [1, 2, 4, 5],
        [1, 2],
    ]
    assert [ran(executed, each) for each in ranked[4:]] == [[1]] * 4


def test_rounds_that_the_user_fixed_are_a_races_too(executed: list[tuple[str, int, int]]) -> None:
    race = Race(lambda run: [each.variant for each in CHAINS], None)
    rounds.count_rounds(session(race, rounds=6), {each: prediction(1) for each in CHAINS})
    assert ran(executed, "csv") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("ranked", [[f"v{number}" for number in range(8)], [f"v{number}" for number in range(7)]])
def test_a_variant_without_a_counted_round_is_not_dropped_for_it(
    ranked: list[str], executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """v7 failed in its first round, or the machine was not idle.

    It then has no rank, but is not treated as the last.
    """
    told = Session.execution

    def execution(self: Session, of: Chain, **asked: Any) -> list[Sample]:
        found = told(self, of, **asked)
        restless = of.variant == "v7" and asked["round_number"] == 1
        return samples(of, (SECOND, SECOND), 1, unsettled=True) if restless else found

    monkeypatch.setattr(Session, "execution", execution)
    clock_says(monkeypatch, lambda: 2 * SECOND * len(executed))
    race = Race(lambda run: ranked, None)
    chains = [chain("raw-io"), *(chain(f"v{number}") for number in range(8))]
    rounds.count_rounds(session(race, budget_s=50.0), {each: prediction(1) for each in chains})
    assert [ran(executed, each) for each in ("v0", "v3", "v4", "v7")] == [[1, 2, 3, 4, 5], [1, 2], [1], [1, 2]]


@pytest.mark.parametrize(("before_s", "counted"), [(0, [1, 2, 3, 4, 5, 6]), (30, [1, 2]), (500, [1])])
@pytest.mark.rule(15)
def test_what_came_before_the_rounds_is_spent_of_the_budget(
    before_s: int, counted: list[int], executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round of all chains takes 8 s of 50 s. The first round is complete, however late it begins."""
    clock_says(monkeypatch, lambda: (before_s + 2 * len(executed)) * SECOND)
    rounds.count_rounds(session(None, rounds=9, budget_s=50.0), {each: prediction(1) for each in CHAINS})
    assert ran(executed, "csv") == counted


@pytest.mark.rule(15)
def test_the_fastest_half_gets_the_rounds_of_a_verdict_if_all_cannot(
    executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Round 1 takes 2 + 2 + 5 + 2 s, which leaves 39 of 50 s. Four more rounds take 44 s with csv, and 24 s without
    csv."""
    seconds = {"csv": 5}
    clock_says(monkeypatch, lambda: sum(seconds.get(name, 2) for name, _, _ in executed) * SECOND)
    rounds.count_rounds(session(None, rounds=5, budget_s=50.0), {each: prediction(1) for each in CHAINS})
    assert ran(executed, "feather") == ran(executed, "orc") == ran(executed, "raw-io")[:5] == [1, 2, 3, 4, 5]
    assert 1 <= len(ran(executed, "csv")) < 5


@pytest.mark.rule(15)
def test_a_round_that_takes_longer_than_the_last_one_ends_with_the_budget(
    executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second round takes 38 s longer than predicted.

    Facts measured after the rounds keep their share of the time.
    """
    clock_says(monkeypatch, lambda: (2 * len(executed) + 38 * (len(executed) > 4)) * SECOND)
    rounds.count_rounds(session(None, rounds=9, budget_s=50.0), {each: prediction(1) for each in CHAINS})
    assert [number for _, number, _ in executed] == [1, 1, 1, 1, 2, 2]


def test_without_a_race_contention_is_not_checked(executed: list[tuple[str, int, int]]) -> None:
    rounds.count_rounds(session(None, rounds=6), {each: prediction(1) for each in CHAINS})
    assert ran(executed, "csv") == ran(executed, "feather") == [1, 2, 3, 4, 5, 6]


def test_what_side_by_side_pauses_is_not_measured(executed: list[tuple[str, int, int]]) -> None:
    asked = session(None, rounds=6)
    asked.paused = [("csv", operation) for operation in CHAINS[0].operations]
    rounds.count_rounds(asked, {each: prediction(1) for each in CHAINS})
    assert ran(executed, "csv") == []
    assert ran(executed, "feather") == [1, 2, 3, 4, 5, 6]


def test_screened_chains_have_no_pilot_round(executed: list[tuple[str, int, int]]) -> None:
    """Chains that are incomplete in the screening still have a pilot round."""
    whole = [sample for each in CHAINS[:2] for sample in samples(each, (SECOND, SECOND), 1)]
    half = samples(CHAINS[2], (SECOND, SECOND), 1)[:1]
    screening: Any = SimpleNamespace(samples=[*whole, *half])
    predictions = pilot_round(session(Race(lambda run: (), screening), rows=60_000))
    assert executed == [("csv", 0, 12_000), ("raw-io", 0, 12_000)]
    # The screening's 100 rows are scaled linearly.
    assert predictions[CHAINS[0]].slowest_ns == 600 * SECOND


def test_a_screened_chain_with_a_read_in_service_is_complete(executed: list[tuple[str, int, int]]) -> None:
    """If a chain has no read, a read in service verified its save, so the chain is complete."""
    one = replace(CHAINS[0], operations=("save", "project[columns=2]"))
    found = samples(replace(one, operations=(*one.operations, "read")), (SECOND,) * 3, 1)
    screening: Any = SimpleNamespace(samples=[*found[:2], changed(found[2], in_service=True)])
    race = session(Race(lambda run: (), screening), rows=60_000)
    race.plan = SimpleNamespace(chains=[one])
    assert set(pilot_round(race)) == {one}
    assert executed == []


@pytest.mark.rule(15)
def test_a_small_table_has_no_pilot_round_and_is_known_from_earlier_runs(executed: list[tuple[str, int, int]]) -> None:
    run = session(None)
    cost = Cost(rows=100_000, timed_ns=4 * SECOND, verified_ns=0, fixed_ns=0)
    seen = Costs({"read csv warm default pandas eq": [cost]})
    run.costs = KnownCosts(seen)
    predictions = pilot_round(run)
    assert executed == []
    assert {each.peak_bytes for each in predictions.values()} == {10 * 40 * 50_000}
    assert predictions[chain("csv")].walls_ns == {"save": 0, "read": 2 * SECOND}
    assert predictions[chain("orc")].walls_ns == {"save": 0, "read": 0}
    pilot_round(session(None, rows=50_001))
    assert len(executed) == len(CHAINS)


def test_a_quick_run_has_no_pilot_round_of_more_bytes_either(executed: list[tuple[str, int, int]]) -> None:
    """A pilot round would be half of the work."""
    for quick in (True, False):
        run = session(None, quick=quick)
        run.datasets["eq"].size_bytes = 40_000_000
        assert set(pilot_round(run)) == set(CHAINS)
        assert len(executed) == (0 if quick else len(CHAINS))


def predicted(wall_ns: int, peak_bytes: int, size_bytes: int) -> Prediction:
    """Return the prediction for a save and a read of equal duration."""
    return Prediction({"save": wall_ns, "read": wall_ns}, peak_bytes, size_bytes)


TOO_MUCH = [
    (predicted(10**9, 699_000_000, 800_000_000), ""),
    (predicted(10**9, 701_000_000, 0), "memory"),
    (predicted(10**9, 0, 901_000_000), "disk"),
    (predicted(20 * 10**9, 0, 0), ""),
    (predicted(21 * 10**9, 0, 0), "timeout"),
]


@pytest.mark.parametrize(("prediction", "kind"), TOO_MUCH)
@pytest.mark.rule(5)
def test_what_exceeds_the_machine_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prediction: Prediction, kind: str
) -> None:
    """The limits are 80 % of 1 GB minus a table of 100 MB, 90 % of a disk of 1 GB, and twice a limit of 10 s
    (rule 5)."""
    monkeypatch.setattr(environment, "usable_memory_bytes", lambda: 10**9)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10**9))
    run: Any = SimpleNamespace(
        datasets={"eq": SimpleNamespace(size_bytes=10**8)},
        bench=lambda chain: SimpleNamespace(folder=tmp_path),
        options=SimpleNamespace(timeout_s=10.0),
    )
    refused = pilot._too_much(run, chain("csv"), prediction)
    assert (refused.kind if refused else "") == kind


@pytest.mark.rule(5)
def test_what_exceeds_the_machine_gets_a_reason_and_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    small, huge = chain("csv"), chain("xml")
    failure = Failure(kind="memory", reason="needs about 9.0 GB of memory, but only 4.0 GB are free")
    prediction = predicted(10**9, 0, 0)
    kept: list[tuple[Chain, Failure]] = []
    monkeypatch.setattr(pilot, "_predicted", lambda session, chain: prediction)
    monkeypatch.setattr(pilot, "_too_much", lambda session, chain, prediction: failure if chain is huge else None)
    run: Any = SimpleNamespace(
        plan=SimpleNamespace(chains=(small, huge)),
        options=SimpleNamespace(quick=False),
        datasets={"eq": SimpleNamespace(name="eq", rows=10**6, size_bytes=10**8)},
        stage=lambda text: None,
        step=lambda text, seconds_left: None,
        keep_reason=lambda chain, failure: kept.append((chain, failure)),
    )
    assert pilot_round(run) == {small: prediction}
    assert kept == [(huge, failure)]


@pytest.mark.parametrize(("budget_s", "again"), [(6.0, []), (100.0, [2, 3])])
def test_a_quick_run_on_a_restless_machine_keeps_its_budget(
    budget_s: float, again: list[int], executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything gets one round, slow or not. Cells that were not counted get two more rounds if these fit."""

    def unsettled(self: Session, of: Chain, *, rows: int, round_number: int, **given: object) -> list[Sample]:
        executed.append((of.variant, round_number, rows))
        wall = 20 * SECOND if of.variant.startswith("csv") else SECOND
        return samples(of, (wall, wall), round_number, unsettled=True)

    monkeypatch.setattr(Session, "execution", unsettled)
    clock_says(monkeypatch, lambda: sum(20 if name == "csv" else 1 for name, _, _ in executed) * SECOND)
    unknown = {each: without_pilot({"save": 0, "read": 0}, 1000) for each in CHAINS}
    rounds.count_rounds(session(None, quick=True, budget_s=budget_s), unknown)
    assert {each: ran(executed, each) for each in ("feather", "csv")} == {"feather": [1, *again], "csv": [1, *again]}


@pytest.mark.parametrize(("asked", "budget_s", "slow", "before"), [(5, 100.0, 6, 15), (9, 40.0, 6, 15)])
@pytest.mark.rule(15)
def test_slow_variants_have_their_round_when_all_others_are_done(
    asked: int,
    budget_s: float,
    slow: int,
    before: int,
    executed: list[tuple[str, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before slow variants begin, the other variants complete all their rounds, or as many as leave time for a slow
    round.

    If the whole budget allows, these are at least five, which a verdict needs. The watcher is notified in between."""
    clock_says(monkeypatch, lambda: 2 * SECOND * len(executed))
    told: list[int] = []
    run = session(None, rounds=asked, budget_s=budget_s)
    run.watcher.part_done = lambda folder: told.append(len(executed))
    costs = {each: prediction(0.2) for each in CHAINS[:2]} | {CHAINS[3]: prediction(0.1), CHAINS[2]: prediction(9)}
    rounds.count_rounds(run, costs)
    assert ran(executed, "csv")[0] == slow
    assert told == [before]
    assert {variant for variant, _, _ in executed[:before]} == {"feather", "orc", "raw-io"}
    assert executed[before][0] in ("csv", "raw-io")
    assert "csv" in {variant for variant, _, _ in executed[before : before + 2]}


def test_slow_variants_leave_the_others_half_of_the_budget(
    executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round without csv takes 6 s. A round of csv alone would exceed the remaining budget."""
    clock_says(monkeypatch, lambda: 2 * SECOND * len(executed))
    costs = {each: prediction(1) for each in CHAINS if each.variant != "csv"} | {CHAINS[2]: prediction(200)}
    rounds.count_rounds(session(None, rounds=9, budget_s=84.0), costs)
    begun = [variant for variant, _, _ in executed].index("csv")
    assert [variant for variant, _, _ in executed[:begun]].count("feather") == 7


@pytest.mark.parametrize(("budget_s", "again"), [(100.0, [6, 7, 8, 9]), (16.0, [])])
def test_what_slow_variants_had_before_a_resume_they_do_not_get_again(
    budget_s: float, again: list[int], executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow variant waited until round 4 before the resume, and would now wait until round 6. Five rounds were
    requested.

    With time it gets the four missing rounds. Without time for them, the existing round is enough."""
    clock_says(monkeypatch, lambda: SECOND * len(executed))
    run, slow = session(None, rounds=5, budget_s=budget_s), CHAINS[2]
    before = samples(slow, (SECOND, SECOND), 4)
    run.earlier = SimpleNamespace(execution=lambda of, how, number, rows: before if (of, number) == (slow, 4) else [])
    costs = {each: prediction(0.2) for each in CHAINS[:2]} | {CHAINS[3]: prediction(0.1), slow: prediction(9)}
    rounds.count_rounds(run, costs)
    assert ran(executed, "csv") == again


@pytest.mark.parametrize(("known", "counted"), [((1, 2, 3), [1, 2, 3, 4, 5]), ((), [1, 2, 3])])
def test_what_a_resumed_run_has_is_not_charged_to_its_budget(
    known: tuple[int, ...], counted: list[int], executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round of all chains takes 8 s, so 25 s suffice for three new rounds. Existing rounds take no time."""
    run = session(None, rounds=5, budget_s=25.0)

    def execution(of: Chain, how: object, number: int, rows: int) -> list[Sample]:
        return samples(of, (SECOND, SECOND), number) if number in known else []

    run.earlier = SimpleNamespace(execution=execution)
    clock_says(monkeypatch, lambda: sum(2 * SECOND for _, at, _ in executed if at not in known))
    rounds.count_rounds(run, {each: prediction(1) for each in CHAINS})
    assert [ran(executed, each) for each in ("feather", "orc", "csv")] == [counted] * 3


@pytest.mark.rule(1)
def test_memory_is_made_ready_for_what_was_used(
    executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs: list[int] = []
    told = Session.execution

    def execution(self: Session, of: Chain, *, need_bytes: int, **asked: Any) -> list[Sample]:
        needs.append(need_bytes)
        found = told(self, of, **asked)
        return [changed(each, figures={**each.figures, "peak_private_bytes": 3000}) for each in found]

    monkeypatch.setattr(Session, "execution", execution)
    rounds.count_rounds(session(None, rounds=2), {CHAINS[0]: Prediction({"save": 1, "read": 1}, 10**9, 10**6)})
    assert needs[0] == 10**9 + 10**6
    assert needs[1] == 3000 + used_bytes(samples(CHAINS[0], (1, 1), 1)) - 7


def test_what_only_the_first_round_shows_to_be_slow_waits_from_then_on(
    executed: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0]
    told = Session.execution

    def execution(self: Session, of: Chain, **asked: Any) -> list[Sample]:
        clock[0] += (20 if of.variant == "csv" else 1) * SECOND
        return told(self, of, **asked)

    monkeypatch.setattr(Session, "execution", execution)
    clock_says(monkeypatch, lambda: clock[0])
    costs = {each: without_pilot({"save": 0, "read": 0}, 1000) for each in CHAINS}
    rounds.count_rounds(session(None, rounds=5, budget_s=80.0), costs)
    assert ran(executed, "feather") == ran(executed, "orc") == [1, 2, 3, 4, 5]
    assert ran(executed, "csv") == [1, 6, 7]
