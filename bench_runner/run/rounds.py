"""Rule 15: the pilot round, which finds problems early and predicts the rest, and the counted rounds.

What a chain does is bench_runner.run.chains; which chain comes next is bench_runner.run.schedule.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from bench_runner.clock import now_ns
from bench_runner.conditions import Conditions
from bench_runner.errors import Failure
from bench_runner.machine import environment
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample, read_run
from bench_runner.run.chains import execute
from bench_runner.run.prediction import (
    MEMORY_SHARE,
    Prediction,
    is_small,
    pilot_rows,
    predict,
    used_bytes,
    without_pilot,
)
from bench_runner.run.resume import whole
from bench_runner.run.schedule import (
    EARLY_STOP_ROUNDS,
    Schedule,
    in_front,
    late,
    looks,
    racing,
    with_verdicts,
    within_budget,
)
from bench_runner.run.session import Session

OVERHEAD_S = 0.6
"""What a chain takes besides its operations, until it was seen to run: for the time left, and for the budget."""
DISK_SHARE = 0.9
"""What is predicted to need more than this share of the free disk is not run (rule 5)."""


def pilot_round(session: Session) -> dict[Chain, Prediction]:
    """Round 0: every chain once on few rows, cheap ones first; finds problems early and predicts the rest.

    Which are cheap is learnt on the way: from the second data set on, by what the variant took on the first. Small
    tables have no pilot round: their first counted round is as quick, and what it takes is known from earlier runs,
    or then.
    """
    session.stage("pilot round")
    predictions: dict[Chain, Prediction] = {}
    known: dict[tuple[str, Conditions], Prediction] = {}
    for dataset in sorted(session.datasets.values(), key=lambda stored: stored.size_bytes):
        chains = [chain for chain in session.plan.chains if chain.dataset == dataset.name]
        took_ns = {variant: prediction.total_ns for (variant, _), prediction in known.items()}
        for chain in sorted(chains, key=lambda chain: took_ns.get(chain.variant, 0)):
            if is_small(dataset.rows, dataset.size_bytes, quick=session.options.quick):
                predictions[chain] = without_pilot(_known_ns(session, chain, dataset.rows), dataset.size_bytes)
                continue
            session.watcher.step(chain.label(), None)
            prediction = _predicted(session, chain)
            if prediction is None:
                continue
            known[chain.variant, chain.conditions] = prediction
            too_much = _too_much(session, chain, prediction)
            if too_much is None:
                predictions[chain] = prediction
            else:
                session.keep_reason(chain, too_much)
    return predictions


def _known_ns(session: Session, chain: Chain, rows: int) -> dict[str, int]:
    """What each operation of the chain took in earlier runs, scaled; 0 where nothing is known."""
    found = {operation: session.costs.expected(operation, chain, rows) for operation in chain.operations}
    return {operation: each.cost.timed_ns if each else 0 for operation, each in found.items()}


def _predicted(session: Session, chain: Chain) -> Prediction | None:
    """What the operations of the chain that pass on few rows will need at full size; None when none does."""
    dataset = session.datasets[chain.dataset]
    samples = _sifted(session, chain)
    if samples:
        rows = samples[0].rows
    else:
        rows = pilot_rows(dataset.rows, dataset.size_bytes)
        samples = _execution(session, chain, rows=rows, round_number=0, need_bytes=dataset.size_bytes // 10)
    prediction = _of_passed(chain, samples, dataset.rows)
    if prediction is None:
        return None
    if prediction.peak_bytes <= MEMORY_SHARE * environment.usable_memory_bytes() or dataset.rows <= 10 * rows:
        return prediction
    # A fixed cost scaled fifty times over looks like a need: ten times the rows tell better.
    need_bytes = prediction.peak_bytes // 5
    samples = _execution(session, chain, rows=10 * rows, round_number=0, need_bytes=need_bytes)
    return _of_passed(chain, samples, dataset.rows)


def _of_passed(chain: Chain, samples: Sequence[Sample], rows: int) -> Prediction | None:
    """An operation that fails costs its own cell alone."""
    passed = [sample for sample in samples if sample.failure is None]
    return predict(passed, rows) if any(sample.operation in chain.operations for sample in passed) else None


def _sifted(session: Session, chain: Chain) -> list[Sample]:
    """One execution of the chain on few rows of the same data, from the run that sifted; empty without one."""
    if session.race is None or session.race.sifting is None:
        return []
    identity = chain.variant, session.public(chain.conditions)
    executions: dict[int, list[Sample]] = {}
    for sample in session.race.sifting.samples:
        if (sample.variant, sample.conditions) == identity and sample.failure is None:
            executions.setdefault(sample.round, []).append(sample)
    complete = [samples for samples in executions.values() if whole(samples).issuperset(chain.operations)]
    return complete[-1] if complete else []


def _too_much(session: Session, chain: Chain, prediction: Prediction) -> Failure | None:
    """Rule 5: the machine is protected."""
    available = environment.usable_memory_bytes()
    # The table itself lies beside the peak: before a save in hand, after a read as the result.
    need_bytes = prediction.peak_bytes + session.datasets[chain.dataset].size_bytes
    if need_bytes > MEMORY_SHARE * available:
        return Failure(
            kind="memory",
            reason=f"needs about {need_bytes / 1e9:.1f} GB of memory, {available / 1e9:.1f} GB are free",
        )
    free = shutil.disk_usage(session.bench(chain).folder).free
    if prediction.size_bytes > DISK_SHARE * free:
        reason = f"needs about {prediction.size_bytes / 1e9:.1f} GB of disk, {free / 1e9:.1f} GB are free"
        return Failure(kind="disk", reason=reason)
    longest = session.options.timeout_s
    if prediction.slowest_ns > 2 * longest * 1e9:
        minutes = prediction.slowest_ns / 60e9
        reason = f"would take about {minutes:.0f} minutes, the limit is {longest / 60:.0f}; --timeout allows more"
        return Failure(kind="timeout", reason=reason)
    return None


def _execution(
    session: Session,
    chain: Chain,
    *,
    rows: int,
    round_number: int,
    need_bytes: int,
    wanted: Sequence[str] | None = None,
) -> list[Sample]:
    """One execution of the chain, or of the operations of it that are wanted: what the earlier part of the run has of
    it, and measured now what it has not."""
    asked = chain.operations if wanted is None else wanted
    known = session.earlier.execution(chain, session.public(chain.conditions), round_number, rows) or []
    there = whole(known)
    missing = [operation for operation in asked if operation not in there]
    if not missing:
        return known
    samples = execute(
        session.bench(chain),
        chain,
        session.datasets[chain.dataset],
        rows=rows,
        round_number=round_number,
        position=session.position,
        need_bytes=need_bytes,
        wanted=missing,
    )
    session.keep(samples)
    again = {sample.operation for sample in samples if not sample.in_service}
    return [*(sample for sample in known if sample.operation in there - again), *samples]


def count_rounds(session: Session, predictions: Mapping[Chain, Prediction], share: float = 1.0) -> None:
    """Rounds outermost, each shuffled, until nobody wants another or this share of the budget is spent."""
    race = session.race
    schedule = Schedule(
        predictions,
        seed=session.seed,
        rounds=session.options.rounds_asked,
        race=race is not None,
    )
    look_after = looks()
    look = next(look_after)
    used: Counter[Chain] = Counter()
    costs_s = {chain: OVERHEAD_S + prediction.total_ns / 1e9 for chain, prediction in predictions.items()}
    deadline_ns = session.budget_ends_ns(share)
    slow: list[str] = []
    ends_ns = deadline_ns
    first = 1
    due: list[Chain] = []
    number = 0
    while True:
        number += 1
        # Again when the first round has shown what was not known before it; a quick run has no other.
        if number <= (1 if session.options.quick else 2) and not slow and deadline_ns is not None and race is None:
            slow = late(costs_s, session.options.budget_s or 0)
            schedule.hold_back(slow)
            ends_ns = deadline_ns - _reserved_ns(slow, costs_s, deadline_ns)
        if race is not None and number > look:
            look = next(look_after)
            ranked = race.contending(read_run(session.folder))
            if deadline_ns is not None:
                ranked = _in_front(ranked, schedule, due, costs_s, (deadline_ns - now_ns()) / 1e9, number)
            schedule.let_run(ranked)
        due = wanted = schedule.due(number)
        limit_ns = None
        now_s = {each: _seconds_of(session, schedule, each, [number], costs_s[each]) for each in due}
        if ends_ns is not None and number > first:
            # What is kept for slow variants waits until the others have the rounds that a verdict needs.
            limit_ns = deadline_ns if deadline_ns is not None and number <= EARLY_STOP_ROUNDS else ends_ns
            if race is None and number < EARLY_STOP_ROUNDS:
                needed_s = {
                    each: _seconds_of(session, schedule, each, _to_verdict(schedule, each, number), costs_s[each])
                    for each in due
                }
                due = with_verdicts(due, needed_s, (limit_ns - now_ns()) / 1e9)
            due = within_budget(due, now_s, (limit_ns - now_ns()) / 1e9)
        elif first > 1:
            # One round of everything, whatever it takes: in a resumed run many have had theirs.
            bare = [chain for chain in due if chain.variant in slow and not schedule.progress[chain].counted]
            if bare or ends_ns is None:
                due = [chain for chain in due if chain.is_raw_io or chain in bare]
            else:
                due = within_budget(due, now_s, (ends_ns - now_ns()) / 1e9)
        if race is not None and number > EARLY_STOP_ROUNDS:
            due = racing(due, {*wanted} - {*due}, schedule.progress)
        if not due:
            if not schedule.release(number):
                return
            _learn_of_earlier(session, schedule, [chain for chain in predictions if chain.variant in slow], number)
            session.stage("slow variants")
            session.save_info()
            session.watcher.part_done(session.folder)
            number, first, ends_ns = number - 1, number, deadline_ns
            continue
        session.stage(f"round {number}")
        for index, chain in enumerate(due):
            if race is None and limit_ns is not None and now_ns() + now_s[chain] * 1e9 > limit_ns:
                # Others of this round took longer than the last time.
                continue
            session.watcher.step(chain.label(), _seconds_left(schedule, costs_s, due[index:], deadline_ns))
            started = now_ns()
            dataset = session.datasets[chain.dataset]
            # Memory and page cache: the peak of the call, and the file that it writes.
            predicted = predictions[chain]
            expected_bytes = max(predicted.peak_bytes, dataset.size_bytes) + predicted.size_bytes
            # The host takes three times as long to give twice as much, and nothing settles better by it.
            need_bytes = used[chain] or expected_bytes
            samples = _execution(
                session,
                chain,
                rows=dataset.rows,
                round_number=number,
                need_bytes=need_bytes,
                wanted=schedule.wanted(chain, number),
            )
            # What the earlier part of the run has takes no time now, and as long as it did when it is measured again.
            costs_s[chain] = max((now_ns() - started) / 1e9, sum(sample.taken_ns for sample in samples) / 1e9)
            schedule.learn(chain, samples)
            used[chain] = max(used[chain], used_bytes(samples))


def _to_verdict(schedule: Schedule, chain: Chain, number: int) -> range:
    """The rounds up to a verdict from round `number` on; fewer for what has fewer in all."""
    missing = EARLY_STOP_ROUNDS - schedule.progress[chain].counted
    return range(number, number + max(min(missing, schedule.remaining_rounds(chain)), 1))


def _learn_of_earlier(session: Session, schedule: Schedule, chains: Sequence[Chain], number: int) -> None:
    """What the earlier part of the run has of slow variants: they waited there for another round than they do now."""
    for chain in chains:
        for before in range(1, number):
            rows = session.datasets[chain.dataset].rows
            found = session.earlier.execution(chain, session.public(chain.conditions), before, rows)
            if found:
                schedule.learn(chain, found)


def _reserved_ns(slow: Collection[str], costs_s: Mapping[Chain, float], deadline_ns: int) -> int:
    """For one round of the slow variants within the budget, but no more than half of what is left of it."""
    of_slow_s = sum(cost_s for chain, cost_s in costs_s.items() if chain.variant in slow)
    return int(min(of_slow_s * 1e9, max(deadline_ns - now_ns(), 0) / 2))


def _in_front(
    ranked: Sequence[str],
    schedule: Schedule,
    last_round: Sequence[Chain],
    costs_s: Mapping[Chain, float],
    left_s: float,
    number: int,
) -> Sequence[str]:
    """Who takes part in round `number` of a race, so that those in front get the rounds that a verdict needs. Of whom
    no round counted yet, nobody knows whether it is in front: it stays, until the schedule gives it up."""
    by_variant: defaultdict[str, float] = defaultdict(float)
    for chain, cost_s in costs_s.items():
        by_variant[chain.variant] += cost_s
    ran = {chain.variant for chain in last_round if not chain.is_raw_io}
    unknown = ran & {chain.variant for chain, progress in schedule.progress.items() if not progress.counted}
    shared_s = sum(cost_s for chain, cost_s in costs_s.items() if chain.is_raw_io or chain.variant in unknown)
    known = [variant for variant in ranked if variant not in unknown]
    rounds = max(EARLY_STOP_ROUNDS - number + 1, 1)
    least = math.ceil(len(ran - unknown) / 2)
    chosen = in_front(known, by_variant, shared_s, left_s, rounds=rounds, least=least)
    return [*chosen, *unknown]


def _seconds_of(session: Session, schedule: Schedule, chain: Chain, numbers: Iterable[int], cost_s: float) -> float:
    """What these rounds of a chain take: nothing where the earlier part of the run has them."""
    rows, conditions = session.datasets[chain.dataset].rows, session.public(chain.conditions)
    known = {number: session.earlier.execution(chain, conditions, number, rows) or () for number in numbers}
    lacking = [not whole(found).issuperset(schedule.wanted(chain, number)) for number, found in known.items()]
    return cost_s * sum(lacking)


def _seconds_left(
    schedule: Schedule, costs_s: Mapping[Chain, float], this_round: Sequence[Chain], deadline_ns: int | None
) -> float:
    """What is left of this round and, as far as the budget allows, of the rounds to come."""
    now = sum(costs_s[chain] for chain in this_round)
    later = sum(max(schedule.remaining_rounds(chain) - 1, 0) * cost for chain, cost in costs_s.items())
    if deadline_ns is None:
        return now + later
    return max(now, min(now + later, (deadline_ns - now_ns()) / 1e9))
