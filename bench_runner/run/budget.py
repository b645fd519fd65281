"""Select what each round measures in a run with a time budget, and estimate the duration of rounds (rule 15 of
docs/method.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench_runner.clock import now_ns
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample
from bench_runner.results.statistics import FEWEST_ROUNDS
from bench_runner.run.resume import whole
from bench_runner.run.schedule import Rounds, Schedule, same_data
from bench_runner.run.session import Session

LATE_SHARE, LATE_ROUNDS, LATE_FACTOR = 1 / 8, 5, 4
"""With a budget, slow variants are measured after all other variants. A variant is slow if two conditions hold (rule
15): LATE_ROUNDS of its rounds take more than LATE_SHARE of the budget, and one of its rounds takes more than
LATE_FACTOR times the median over all variants."""


@dataclass
class Spending:
    """The duration of one round of each chain, and the end of the budget. A chain is one save followed by the
    operations that read the saved copy, all with one variant."""

    session: Session
    schedule: Schedule
    costs_s: dict[Chain, float]
    deadline_ns: int | None
    """Monotonic time at which the budget is spent; None without a budget."""

    def learn(self, chain: Chain, began_ns: int, samples: Sequence[Sample]) -> None:
        """Replace the expected duration of a chain (a save and the operations on the saved copy) by the measured
        duration. The chain was executed from `began_ns` until now, with the results `samples`."""
        # In a resumed run, samples that were measured before the interruption take no time now. For those samples, use
        # the time that they took then.
        self.costs_s[chain] = max((now_ns() - began_ns) / 1e9, sum(sample.taken_ns for sample in samples) / 1e9)

    def seconds_of(self, chain: Chain, numbers: Iterable[int]) -> float:
        """Return the expected seconds for executing a chain in the rounds `numbers`. Rounds that were measured before
        the run was resumed take no time."""
        known = {number: self.session.earlier_execution(chain, number) for number in numbers}
        lacking = [not whole(found).issuperset(self.schedule.wanted(chain, number)) for number, found in known.items()]
        return self.costs_s[chain] * sum(lacking)

    def left_s(self, until_ns: int) -> float:
        """Return the seconds until `until_ns`; negative if that time has passed."""
        return (until_ns - now_ns()) / 1e9

    def seconds_left(self, this_round: Sequence[Chain]) -> float:
        """Return the expected seconds until the last round ends. `this_round` are the chains that are still to be
        executed in this round. With a budget, the last round is expected to end when the budget is spent."""
        now = sum(self.costs_s[chain] for chain in this_round)
        later = sum(
            max(self.schedule.remaining_rounds(chain) - 1, 0) * cost_s for chain, cost_s in self.costs_s.items()
        )
        if self.deadline_ns is None:
            return now + later
        return max(now, min(now + later, self.left_s(self.deadline_ns)))


class BudgetRounds(Rounds):
    """The rounds of a run with a budget. The first round executes all chains except those of slow variants. Further
    rounds follow as long as the budget lasts. Slow variants are measured after the rounds of all other variants."""

    def __init__(self, session: Session, schedule: Schedule, spending: Spending, deadline_ns: int) -> None:
        super().__init__(schedule)
        self._session, self._spending, self._deadline_ns = session, spending, deadline_ns
        self._slow: list[str] = []
        self._first = 1
        """Number of the first round of the current variants. It is 1 while the other variants are measured, and later
        the number of the first round of the slow variants."""
        self._ends_ns = deadline_ns
        """Monotonic time at which the rounds of the current variants end."""
        self._limit_ns: int | None = None
        """Monotonic time at which this round ends."""
        self._seconds: Mapping[Chain, float] = {}
        """Duration of each chain in this round."""

    def next_round(self) -> Sequence[Chain]:
        """Return the chains of the next round, in order; empty after the last round."""
        self.number += 1
        # Select the slow variants again after the first round, because durations that were unknown are known then. A
        # quick run has only one round.
        if self.number <= (1 if self._session.options.quick else 2) and not self._slow:
            self._hold_back_slow()
        due = self._affordable()
        if due or not self._schedule.release(self.number):
            return due
        self._turn_to_slow()
        return self._affordable()

    def fits(self, chain: Chain) -> bool:
        """Return whether there is still time for a chain of this round. There may be too little time if other chains
        took longer than expected."""
        return self._limit_ns is None or self._seconds[chain] <= self._spending.left_s(self._limit_ns)

    def _hold_back_slow(self) -> None:
        self._slow = late(self._spending.costs_s, self._session.options.budget_s or 0)
        self._schedule.hold_back(self._slow)
        of_slow_s = sum(cost_s for chain, cost_s in self._spending.costs_s.items() if chain.variant in self._slow)
        # Reserve one round of the slow variants within the budget, but at most half of the remaining budget.
        reserved_s = min(of_slow_s, max(self._spending.left_s(self._deadline_ns), 0) / 2)
        self._ends_ns = self._deadline_ns - int(reserved_s * 1e9)

    def _turn_to_slow(self) -> None:
        """Start the rounds of the slow variants, which get the remaining budget."""
        for chain in self._schedule.progress:
            if chain.variant in self._slow:
                # In a resumed run, the slow variants may have started in an earlier round before the interruption. Use
                # the samples of those rounds.
                for before in range(1, self.number):
                    if found := self._session.earlier_execution(chain, before):
                        self._schedule.learn(chain, found)
        self._session.stage("slow variants")
        self._session.save_info()
        self._session.watcher.part_done(self._session.folder)
        self._first, self._ends_ns = self.number, self._deadline_ns

    def _affordable(self) -> Sequence[Chain]:
        """Return the chains of this round that can be measured in the remaining time."""
        due = self._schedule.due(self.number)
        self._seconds = {chain: self._spending.seconds_of(chain, [self.number]) for chain in due}
        if self.number == self._first:
            self._limit_ns = None
            return self._of_first_round(due)
        # Until a comparison of the other variants has enough rounds, those variants may also use the time reserved for
        # slow variants.
        self._limit_ns = self._deadline_ns if self.number <= FEWEST_ROUNDS else self._ends_ns
        if self.number < FEWEST_ROUNDS:
            needed_s = {chain: self._spending.seconds_of(chain, self._to_verdict(chain)) for chain in due}
            due = with_verdicts(due, needed_s, self._spending.left_s(self._limit_ns))
        return within_budget(due, self._seconds, self._spending.left_s(self._limit_ns))

    def _of_first_round(self, due: Sequence[Chain]) -> Sequence[Chain]:
        """Return the chains of a first round. A first round is measured even if it exceeds the budget. There is one
        exception: in a resumed run, the slow variants may already have a counted round. Then return only the chains
        that fit into the budget."""
        if self._first == 1:
            return due
        progress = self._schedule.progress
        bare = [chain for chain in due if chain.variant in self._slow and not progress[chain].counted]
        if bare:
            return [chain for chain in due if chain.is_raw_io or chain in bare]
        return within_budget(due, self._seconds, self._spending.left_s(self._ends_ns))

    def _to_verdict(self, chain: Chain) -> range:
        """Return the numbers of the rounds that the chain still needs for a comparison with other variants
        (FEWEST_ROUNDS). The numbers start with this round. If fewer rounds of the chain remain, return the numbers of
        the remaining rounds. Return at least this round."""
        missing = FEWEST_ROUNDS - self._schedule.progress[chain].counted
        return range(self.number, self.number + max(min(missing, self._schedule.remaining_rounds(chain)), 1))


def by_variant(costs_s: Mapping[Chain, float]) -> dict[str, float]:
    """Return the seconds that one round of each variant takes, excluding raw I/O (a plain write and read). `costs_s`
    has the seconds of each chain."""
    sums: defaultdict[str, float] = defaultdict(float)
    for chain, cost_s in costs_s.items():
        if not chain.is_raw_io:
            sums[chain.variant] += cost_s
    return sums


def late(costs_s: Mapping[Chain, float], budget_s: float) -> list[str]:
    """Return the names of the variants that are measured last because they are slow (see LATE_SHARE)."""
    of_variants = by_variant(costs_s)
    middle_s = median(of_variants.values()) if of_variants else 0.0
    least_s = max(LATE_SHARE * budget_s / LATE_ROUNDS, LATE_FACTOR * middle_s)
    return [variant for variant, cost_s in of_variants.items() if cost_s > least_s]


def within_budget(chains: Sequence[Chain], costs_s: Mapping[Chain, float], left_s: float) -> list[Chain]:
    """Return as many of `chains` as fit into `left_s` seconds, selecting the fastest first. Keep the order of `chains`.
    `costs_s` has the duration of each chain."""
    spent, chosen = 0.0, set()
    for chain in sorted(chains, key=lambda chain: costs_s[chain]):
        spent += costs_s[chain]
        if spent > left_s:
            break
        chosen.add(chain)
    return [chain for chain in chains if chain in chosen]


def with_verdicts(chains: Sequence[Chain], needed_s: Mapping[Chain, float], left_s: float) -> list[Chain]:
    """Return the chains that can get enough rounds for a comparison within `left_s` seconds. Add the chains of raw I/O
    (a plain write and read) on the same data.

    `needed_s` has the seconds that each chain needs for enough rounds. The fastest chains are selected first. If fewer
    than half of the chains fit, return all chains. The order of `chains` is kept.
    """
    asked = [chain for chain in chains if not chain.is_raw_io]
    left_s -= sum(needed_s[chain] for chain in chains if chain.is_raw_io)
    fitting = within_budget(asked, needed_s, left_s)
    if not fitting or 2 * len(fitting) < len(asked):
        return list(chains)
    kept = set(fitting)
    kept |= {each for each in chains if each.is_raw_io and any(same_data(chain, each) for chain in fitting)}
    return [chain for chain in chains if chain in kept]
