"""Number and order of rounds (rule 15)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from bench_runner.plan.chain import Chain
from bench_runner.results.records import Failure, Sample, changed
from bench_runner.run.budget import late, with_verdicts, within_budget
from bench_runner.run.prediction import Prediction, is_small, pilot_rows, predict, without_pilot
from bench_runner.run.race import MOST_RACE_ROUNDS, in_front, looks, racing
from bench_runner.run.schedule import Progress, Schedule
from tests.bench_runner.run.invented import SECOND, chain, sample


def prediction(seconds: float) -> Prediction:
    """Return the prediction for a save with this duration, and a read that takes half as long."""
    walls_ns = {"save": int(seconds * SECOND), "read": int(0.5 * seconds * SECOND)}
    return Prediction(walls_ns, peak_bytes=0, size_bytes=0)


def samples(of: Chain, walls: tuple[int, int], round_number: int, **changes: object) -> list[Sample]:
    seen = {"peak_private_bytes": 7, "allocated_bytes": 9}
    return [
        sample(of, operation, rows=100, round=round_number, figures={"wall_ns": wall, **seen}, **changes)
        for operation, wall in zip(of.operations, walls, strict=True)
    ]


def rounds_run(schedule: Schedule, noise: float = 0.2, limit: int = 50) -> dict[str, list[int]]:
    """Play rounds whose wall times alternate by `noise`. Return the rounds in which each variant ran."""
    ran: dict[str, list[int]] = {}
    for number in range(1, limit):
        due = schedule.due(number)
        if not due:
            return ran
        for each in due:
            wall = int(SECOND * (1 + noise * (number % 3)))
            schedule.progress[each].add(samples(each, (wall, wall), number))
            ran.setdefault(each.variant, []).append(number)
    raise AssertionError("the schedule never ends")


@pytest.mark.rule(15)
def test_rounds_by_predicted_time() -> None:
    seconds = {"feather": 1, "csv": 2, "xml": 11, "excel": 61}
    chains = {chain(name): prediction(time_s) for name, time_s in seconds.items()}
    ran = rounds_run(Schedule(chains, seed=1, rounds=None))
    assert {variant: len(rounds) for variant, rounds in ran.items()} == {"feather": 9, "csv": 7, "xml": 3, "excel": 1}


@pytest.mark.rule(15)
def test_a_narrow_interval_stops_after_seven_rounds() -> None:
    ran = rounds_run(Schedule({chain("csv"): prediction(1)}, seed=1, rounds=None), noise=0.001)
    assert ran["csv"] == [1, 2, 3, 4, 5, 6, 7]


def test_rounds_that_the_user_fixed_are_all_run() -> None:
    chains = {chain("csv"): prediction(1), chain("excel"): prediction(100)}
    ran = rounds_run(Schedule(chains, seed=1, rounds=9), noise=0.0)
    assert {variant: len(rounds) for variant, rounds in ran.items()} == {"csv": 9, "excel": 9}


@pytest.mark.rule(16)
def test_raw_io_takes_part_as_long_as_another_of_its_data_set() -> None:
    chains = {chain("csv"): prediction(1), chain("raw-io"): prediction(0.1), chain("raw-io", "int"): prediction(0.1)}
    chains[chain("xml", "int")] = prediction(20)
    schedule = Schedule(chains, seed=1, rounds=None)
    by_dataset: dict[str, int] = {"eq": 0, "int": 0}
    for number in range(1, 20):
        for each in schedule.due(number):
            wall = SECOND + number % 3 * SECOND // 2 if not each.is_raw_io else SECOND
            schedule.progress[each].add(samples(each, (wall, wall), number))
            by_dataset[each.dataset] += each.is_raw_io
    assert by_dataset == {"eq": 9, "int": 3}


@pytest.mark.rule(15)
def test_the_order_is_shuffled_by_the_seed_and_differs_between_rounds() -> None:
    chains = {chain(f"v{number}"): prediction(1) for number in range(12)}
    first = [each.variant for each in Schedule(chains, seed=5, rounds=3).due(1)]
    again = [each.variant for each in Schedule(dict(reversed(chains.items())), seed=5, rounds=3).due(1)]
    second = [each.variant for each in Schedule(chains, seed=5, rounds=3).due(2)]
    other = [each.variant for each in Schedule(chains, seed=6, rounds=3).due(1)]
    assert first == again
    assert first != second
    assert first != other


@pytest.mark.rule(15)
def test_slow_chains_are_the_last_block() -> None:
    chains = {chain(f"cheap{n}"): prediction(1) for n in range(5)} | {
        chain(f"dear{n}"): prediction(20) for n in range(5)
    }
    order = [each.variant.startswith("dear") for each in Schedule(chains, seed=3, rounds=None).due(1)]
    assert order == [False] * 5 + [True] * 5


@pytest.mark.rule(1)
def test_unsettled_samples_are_made_up_for() -> None:
    one = chain("csv")
    schedule = Schedule({one: prediction(1)}, seed=1, rounds=2)
    schedule.progress[one].add(samples(one, (1, 1), 1, unsettled=True))
    schedule.progress[one].add(samples(one, (1, 1), 2))
    assert schedule.due(3) == [one]
    schedule.progress[one].add(samples(one, (1, 1), 3))
    assert schedule.due(4) == []


def played(schedule: Schedule, lost: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Return the rounds in which each variant ran, if samples of some variants are not counted. Intervals stay wide."""
    ran: dict[str, list[int]] = {}
    for number in range(1, 30):
        due = schedule.due(number)
        if not due:
            return ran
        for each in due:
            wall = SECOND + number % 3 * SECOND // 2
            not_counted = number in lost.get(each.variant, ())
            schedule.learn(each, samples(each, (wall, wall), number, unsettled=not_counted))
            ran.setdefault(each.variant, []).append(number)
    raise AssertionError("the schedule never ends")


@pytest.mark.rule(15)
def test_variants_compared_with_a_lost_sample_get_five_common_rounds() -> None:
    """Otherwise a run of five rounds would have no verdict after one lost round."""
    five = list(range(1, 6))
    chains = {chain("csv"): prediction(1), chain("orc"): prediction(1), chain("csv", "int"): prediction(1)}
    assert played(Schedule(dict(list(chains.items())[:2]), seed=1, rounds=5), {}) == {"csv": five, "orc": five}
    other_data = {chain("csv"): prediction(1), chain("orc", "int"): prediction(1)}
    ran = played(Schedule(other_data, seed=1, rounds=5), {"csv": [2]})
    assert ran == {"csv": [*five, 6], "orc": five}
    ran = played(Schedule(dict(list(chains.items())[:2]), seed=1, rounds=5), {"csv": [2]})
    assert ran == {"csv": [*five, 6], "orc": [*five, 6]}
    ran = played(Schedule(dict(list(chains.items())[:2]), seed=1, rounds=5), {"csv": [2], "orc": [3]})
    assert ran == {"csv": [*five, 6, 7], "orc": [*five, 6, 7]}


@pytest.mark.rule(15)
def test_no_rounds_are_added_for_an_impossible_verdict() -> None:
    two = {chain("csv"): prediction(1), chain("orc"): prediction(1)}
    # If three of the seven rounds are lost, the two variants cannot share enough rounds.
    assert played(Schedule(two, seed=1, rounds=5), {"csv": [1, 2, 3]})["orc"] == [1, 2, 3, 4, 5]
    # Three requested rounds do not suffice for a verdict in any case.
    assert played(Schedule(two, seed=1, rounds=3), {"csv": [1]}) == {"csv": [1, 2, 3, 4], "orc": [1, 2, 3]}
    # Five of the seven rounds are in common, which is enough.
    assert played(Schedule(two, seed=1, rounds=7), {"csv": [1, 2]})["orc"] == list(range(1, 8))


def failed(of: Chain, round_number: int, *operations: str) -> list[Sample]:
    """Return an execution in which only these operations failed."""
    failure = Failure(kind="crash", reason="x")
    return [
        changed(sample, figures={}, failure=failure) if sample.operation in operations else sample
        for sample in samples(of, (SECOND,) * len(of.operations), round_number)
    ]


def test_two_failures_end_a_chain() -> None:
    """If the save fails, the operations that need it are skipped in each execution."""
    one = chain("csv")
    schedule = Schedule({one: prediction(1)}, seed=1, rounds=None)
    schedule.progress[one].add(failed(one, 1, "save", "read"))
    assert schedule.due(2) == [one]
    schedule.progress[one].add(failed(one, 2, "save", "read"))
    assert schedule.due(3) == []
    assert schedule.remaining_rounds(one) == 0


PROJECT = "project[columns=2]"


def with_projection(variant: str) -> Chain:
    return replace(chain(variant), operations=("save", "read", PROJECT))


def executed(of: Chain, wanted: Sequence[str], walls: Mapping[str, int], round_number: int) -> list[Sample]:
    """Return an execution without failures. It is in service if it is a save that no read verifies, or a read that the
    chain does not have."""
    operations = of.needed_for(wanted)
    found = samples(replace(of, operations=operations), tuple(walls[name] for name in operations), round_number)
    serving = {"read"} - {*of.operations} | ({"save"} if "read" not in operations else set())
    return [changed(sample, in_service=sample.operation in serving) for sample in found]


def test_rounds_continue_only_for_cells_that_are_not_narrow() -> None:
    """The save that the remaining cells need is executed in service, so it is not counted."""
    one = with_projection("csv")
    schedule = Schedule({one: Prediction(dict.fromkeys(one.operations, SECOND), 0, 0)}, seed=1, rounds=None)
    asked: dict[int, tuple[str, ...]] = {}
    for number in range(1, 20):
        if not schedule.due(number):
            break
        asked[number] = schedule.wanted(one, number)
        walls = {"save": SECOND, "read": SECOND, PROJECT: SECOND + number % 3 * SECOND // 2}
        schedule.progress[one].add(executed(one, asked[number], walls, number))
    everything = dict.fromkeys(range(1, 8), one.operations)
    assert asked == everything | {8: (PROJECT,), 9: (PROJECT,)}
    counted = {name: len(schedule.progress[one].walls_ns[name]) for name in one.operations}
    assert counted == {"save": 7, "read": 7, PROJECT: 9}


def test_a_cell_that_is_narrow_counts_where_it_is_executed_for_another() -> None:
    """A save whose interval is not narrow needs a read to verify it.

    This read counts although its interval is narrow.
    """
    one = with_projection("csv")
    schedule = Schedule({one: Prediction(dict.fromkeys(one.operations, SECOND), 0, 0)}, seed=1, rounds=None)
    for number in range(1, 10):
        assert schedule.due(number) == [one]
        wanted = schedule.wanted(one, number)
        assert wanted == (one.operations if number <= 7 else ("save",))
        walls = {"save": SECOND + number % 3 * SECOND // 2, "read": SECOND, PROJECT: SECOND}
        schedule.progress[one].add(executed(one, wanted, walls, number))
    assert schedule.due(10) == []
    counted = {name: len(schedule.progress[one].walls_ns[name]) for name in one.operations}
    assert counted == {"save": 9, "read": 9, PROJECT: 7}


def test_rounds_are_planned_by_what_a_sample_of_the_cell_takes() -> None:
    """A slow read reduces the rounds of the save that it verifies, but not the rounds of the projection."""
    one = with_projection("csv")
    walls_ns = {"save": SECOND, "read": 61 * SECOND, PROJECT: SECOND}
    schedule = Schedule({one: Prediction(walls_ns, 0, 0)}, seed=1, rounds=None)
    assert [schedule.planned_rounds(one, name) for name in one.operations] == [1, 1, 9]
    assert schedule.remaining_rounds(one) == 9


def test_failing_twice_gives_up_only_the_cell() -> None:
    one = with_projection("csv")
    schedule = Schedule({one: Prediction(dict.fromkeys(one.operations, SECOND), 0, 0)}, seed=1, rounds=4)
    schedule.progress[one].add(failed(one, 1, PROJECT))
    assert schedule.wanted(one, 2) == one.operations
    schedule.progress[one].add(failed(one, 2, PROJECT))
    assert schedule.wanted(one, 3) == ("save", "read")
    assert schedule.due(3) == [one]
    for number in (3, 4):
        schedule.progress[one].add(executed(one, ("save", "read"), dict.fromkeys(one.operations, SECOND), number))
    assert schedule.due(5) == []


def test_an_operation_that_failed_on_few_rows_is_not_wanted() -> None:
    one = with_projection("csv")
    schedule = Schedule({one: Prediction({"save": SECOND, "read": SECOND}, 0, 0)}, seed=1, rounds=3)
    assert schedule.wanted(one, 1) == ("save", "read")


@pytest.mark.rule(15)
def test_the_budget_takes_the_cheap_ones_first() -> None:
    a, b, c = chain("a"), chain("b"), chain("c")
    costs = {a: 5.0, b: 1.0, c: 2.0}
    assert within_budget([a, b, c], costs, 3.5) == [b, c]
    assert within_budget([a, b, c], costs, 100) == [a, b, c]
    assert within_budget([a, b, c], costs, 0.5) == []


def raw_io(dataset: str) -> Chain:
    return chain("raw-io[engine=readinto]", dataset)


def test_where_all_rounds_fit_for_half_these_come_first_with_their_raw_io() -> None:
    cheap, middle, dear = chain("cheap"), chain("middle"), chain("dear", "core")
    needed_s = {cheap: 1.0, middle: 3.0, dear: 50.0, raw_io("eq"): 1.0, raw_io("core"): 1.0}
    everybody = [raw_io("core"), dear, middle, raw_io("eq"), cheap]
    assert with_verdicts(everybody, needed_s, 100) == everybody
    assert with_verdicts(everybody, needed_s, 10) == [middle, raw_io("eq"), cheap]
    assert with_verdicts(everybody, needed_s, 4) == everybody, "one verdict is worth less than figures of all"


def test_raw_io_does_not_count_as_what_is_asked() -> None:
    alone = [raw_io("eq"), chain("dear")]
    assert with_verdicts(alone, {alone[0]: 1.0, alone[1]: 50.0}, 10) == alone


@pytest.mark.rule(5)
def test_predictions_scale_with_the_rows() -> None:
    one = chain("csv")
    found = predict(samples(one, (SECOND, 3 * SECOND), 0), rows=1000)
    assert found == Prediction({"save": 10 * SECOND, "read": 30 * SECOND}, peak_bytes=70, size_bytes=90)
    assert (found.slowest_ns, found.total_ns) == (30 * SECOND, 40 * SECOND)


def test_the_sync_behind_a_save_is_predicted_too() -> None:
    saved, read = samples(chain("csv"), (SECOND, SECOND), 0)
    synced = changed(saved, figures={**saved.figures, "sync_ns": 2 * SECOND})
    assert predict([synced, read], rows=100).walls_ns == {"save": 3 * SECOND, "read": SECOND}


def test_a_training_loop_is_predicted_by_both_of_its_epochs() -> None:
    (loop,) = samples(replace(chain("lance"), operations=("batches",)), (SECOND,), 0)
    told = {**loop.figures, "wall_ns": 1_000, "calls_ns": 4 * SECOND, "epoch_rows": 100}
    assert predict([changed(loop, figures=told)], rows=200).walls_ns == {"batches": 8 * SECOND}


@pytest.mark.parametrize(("rows", "expected"), [(1_000_000, 20_000), (10_000, 2_000), (1_500, 1_000), (400, 400)])
@pytest.mark.rule(15)
def test_rows_of_the_pilot_round(rows: int, expected: int) -> None:
    assert pilot_rows(rows, 60 * rows) == expected


IMAGES = [(50_000, 3_200, 5_000), (2_000, 100_000, 160), (3, 10**9, 1)]


@pytest.mark.parametrize(("images", "each_bytes", "expected"), IMAGES)
def test_large_rows_have_a_pilot_round_by_their_bytes(images: int, each_bytes: int, expected: int) -> None:
    assert pilot_rows(images, images * each_bytes) == expected


def test_a_few_large_rows_are_no_small_data_set() -> None:
    assert is_small(50_000, 10**6)
    assert not is_small(50_001, 10**6)
    assert is_small(2_000, 16 * 10**6)
    assert not is_small(2_000, 16 * 10**6 + 1)
    assert is_small(50_000, 50 * 10**6, quick=True)
    assert not is_small(50_001, 10**6, quick=True)
    assert not is_small(2_000, 50 * 10**6 + 1, quick=True)


@pytest.mark.rule(15)
def test_a_race_continues_for_the_variants_that_may_run() -> None:
    """A race ends neither after a number of rounds nor when intervals are narrow. Paused variants may return. Raw I/O
    takes part."""
    chains = {chain("feather"): prediction(0.1), chain("orc"): prediction(11), chain("raw-io"): prediction(0.1)}
    schedule = Schedule(chains, seed=1, rounds=MOST_RACE_ROUNDS)
    let_run = {6: ["feather", "orc"], 10: ["feather"], 12: ["orc", "feather"], 15: []}
    ran: dict[str, list[int]] = {}
    for number in range(1, 17):
        if number in let_run:
            schedule.let_run(let_run[number])
        for each in schedule.due(number):
            schedule.progress[each].add(samples(each, (SECOND, SECOND), number))
            ran.setdefault(each.variant, []).append(number)
    assert ran["feather"] == ran["raw-io"] == [*range(1, 15)]
    assert ran["orc"] == [*range(1, 10), 12, 13, 14]


def test_a_paused_operation_takes_no_part_and_a_chain_ends_with_its_last_one() -> None:
    chains = {chain("feather"): prediction(0.1), chain("orc"): prediction(0.1), chain("raw-io"): prediction(0.1)}
    schedule = Schedule(chains, seed=1, rounds=5)
    feather, *_ = chains
    first, second = feather.operations
    schedule.pause([("feather", first)])
    assert schedule.wanted(feather, 1) == (second,)
    schedule.pause([("feather", first), ("feather", second)])
    assert {each.variant for each in schedule.due(1)} == {"orc", "raw-io"}


def test_a_race_looks_at_growing_intervals() -> None:
    assert list(itertools.islice(looks(), 12)) == [1, 2, 3, 4, 5, 7, 9, 12, 16, 22, 30, 42]


@pytest.mark.rule(15)
def test_a_short_budget_goes_to_those_in_front() -> None:
    """Each of six variants takes 2 s per round, and raw I/O takes 1 s."""
    ranked = [*"abcdef"]
    costs_s = dict.fromkeys(ranked, 2.0)

    def kept(left_s: float, rounds: int = 4, least: int = 3) -> int:
        found = in_front(ranked, costs_s, 1.0, left_s, rounds=rounds, least=least)
        assert found == ranked[: len(found)]
        return len(found)

    assert kept(52) == 6, "four rounds of all fit"
    assert kept(51) == 5
    assert kept(30) == 3, "four rounds of three fit"
    assert kept(20) == 3, "half of them, although four rounds fit of two only"
    assert kept(20, least=2) == 2
    assert kept(6) == 2, "one round of three does not fit"
    assert kept(0) == 2, "a race needs two"
    assert kept(13, rounds=1) == 6


@pytest.mark.rule(15)
def test_no_variant_races_alone() -> None:
    """A chain without a competitor, or with a competitor on only one of two sizes, does not show which variant
    is best."""
    one, other, yardstick = chain("feather"), chain("orc"), chain("raw-io")
    small_one, small_other = chain("feather", "eq[share=0.25]"), chain("orc", "eq[share=0.25]")
    everything = [one, other, small_one, small_other, yardstick]
    progress = {each: Progress(each.operations) for each in everything}
    for each in everything:
        for number in range(1, 6):
            progress[each].add(samples(each, (SECOND, SECOND), number))
    assert racing(everything, (), progress) == everything
    assert racing([one, yardstick], (), progress) == []
    assert racing([one, small_one, small_other, yardstick], [other], progress) == []
    uncounted = {**progress, one: Progress(one.operations)}
    assert racing([one, yardstick], (), uncounted) == [one, yardstick]


@pytest.mark.rule(15)
def test_what_had_no_pilot_round_is_given_up_when_it_fails_once() -> None:
    unknown = without_pilot({"save": 0, "read": 0}, size_bytes=1000)
    schedule = Schedule({chain("csv"): prediction(1), chain("xml"): unknown, chain("orc"): unknown}, seed=1, rounds=3)
    failure = Failure(kind="error", reason="no")

    def failed(name: str) -> list[Sample]:
        return [changed(sample, figures={}, failure=failure) for sample in samples(chain(name), (1, 1), 1)]

    schedule.learn(chain("xml"), failed("xml"))
    schedule.learn(chain("orc"), samples(chain("orc"), (SECOND, SECOND), 1))
    schedule.learn(chain("orc"), failed("orc"))
    assert {each.variant for each in schedule.due(2)} == {"csv", "orc"}
    schedule.learn(chain("orc"), failed("orc"))
    assert [each.variant for each in schedule.due(3)] == ["csv"]


@pytest.mark.rule(15)
def test_what_a_first_round_has_shown_decides_the_rounds_and_the_order_to_come() -> None:
    """Without a pilot round, it is unknown before the first round which chains are slow."""
    unknown = without_pilot({"save": 0, "read": 0}, size_bytes=1000)
    schedule = Schedule({chain("csv"): unknown, chain("xml"): unknown}, seed=1, rounds=None)
    assert schedule.planned_rounds(chain("xml"), "read") == 9
    schedule.learn(chain("xml"), samples(chain("xml"), (SECOND, 11 * SECOND), 1))
    schedule.learn(chain("csv"), samples(chain("csv"), (SECOND, SECOND), 1))
    assert schedule.planned_rounds(chain("xml"), "read") == 3
    assert [each.variant for each in schedule.due(2)] == ["csv", "xml"]


def test_what_waits_comes_after_the_rounds_of_all_others() -> None:
    chains = {chain("csv"): prediction(1), chain("xml"): prediction(20), chain("raw-io"): prediction(0.1)}
    schedule = Schedule(chains, seed=1, rounds=5)
    schedule.hold_back(["xml"])
    ran: list[list[str]] = []
    number = 0
    while True:
        number += 1
        due = schedule.due(number)
        if not due:
            if not schedule.release(number):
                break
            number -= 1
            continue
        for each in due:
            schedule.learn(each, samples(each, (SECOND, SECOND), number))
        ran.append(sorted(each.variant for each in due))
    assert ran == [["csv", "raw-io"]] * 5 + [["raw-io", "xml"]] * 5


@pytest.mark.rule(15)
def test_no_rounds_are_added_for_variants_that_waited() -> None:
    """These variants have no common round, so additional rounds cannot give a verdict."""
    chains = {chain("csv"): prediction(1), chain("xml"): prediction(20)}
    schedule = Schedule(chains, seed=1, rounds=5)
    schedule.hold_back(["xml"])
    assert played(schedule, {}) == {"csv": [1, 2, 3, 4, 5]}
    assert schedule.release(6)
    assert [each.variant for each in schedule.due(6)] == ["xml"]


@pytest.mark.rule(15)
def test_slow_is_what_a_budget_cannot_wait_for() -> None:
    costs_s = {chain("csv"): 1.0, chain("orc"): 1.0, chain("raw-io"): 60.0}
    costs_s |= {chain("xml"): 3.0, chain("xml", "int"): 3.0}
    assert late(costs_s, budget_s=200) == ["xml"]
    assert late(costs_s, budget_s=300) == []
    assert late(costs_s, budget_s=1) == ["xml"], "all are too slow for such a budget, but only one is slow"
    assert late({}, budget_s=1) == []
