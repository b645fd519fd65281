"""Rule 15: the rounds of a race, which goes on for as long as more than one variant may win."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from bench_runner.plan.chain import Chain
from bench_runner.results.records import read_run
from bench_runner.run.budget import Spending, by_variant, within_budget
from bench_runner.run.schedule import EARLY_STOP_ROUNDS, Progress, Rounds, Schedule
from bench_runner.run.session import Race

RACE_LOOKS = 1.4
"""A race looks who is shown to be worse after 5 rounds, and each time after so many times as many (rule 15). Looks
after every round would find some unlucky row of rounds for everybody. Before, it looks who is in front."""
MOST_RACE_ROUNDS = 200
"""A race that neither its budget nor a decision has ended ends after so many rounds."""


class RaceRounds(Rounds):
    """Rounds of the variants that may still win, as long as there is time for all of them."""

    def __init__(self, race: Race, schedule: Schedule, spending: Spending, folder: Path) -> None:
        """`folder` holds what was measured so far."""
        super().__init__(schedule)
        self._race, self._spending, self._folder = race, spending, folder
        self._looks = looks()
        self._look = next(self._looks)
        self._last_round: Sequence[Chain] = ()

    def next_round(self) -> Sequence[Chain]:
        """The chains of the next round, in order; empty when the race has ended."""
        self.number += 1
        if self.number > self._look:
            self._look = next(self._looks)
            self._schedule.let_run(self._contending())
        due = wanted = self._schedule.due(self.number)
        if self._spending.deadline_ns is not None and self.number > 1:
            seconds = {chain: self._spending.seconds_of(chain, [self.number]) for chain in wanted}
            due = within_budget(wanted, seconds, self._spending.left_s(self._spending.deadline_ns))
        if self.number > EARLY_STOP_ROUNDS:
            due = racing(due, {*wanted} - {*due}, self._schedule.progress)
        self._last_round = due
        return due

    def _contending(self) -> Sequence[str]:
        """The variants of the next round. With a budget, those in front get the rounds that a verdict needs. Variants
        without a counted round cannot be ranked; they stay until the schedule gives them up."""
        ranked = self._race.contending(read_run(self._folder))
        if self._spending.deadline_ns is None:
            return ranked
        costs_s = self._spending.costs_s
        ran = {chain.variant for chain in self._last_round if not chain.is_raw_io}
        unknown = ran & {chain.variant for chain, progress in self._schedule.progress.items() if not progress.counted}
        shared_s = sum(cost_s for chain, cost_s in costs_s.items() if chain.is_raw_io or chain.variant in unknown)
        chosen = in_front(
            [variant for variant in ranked if variant not in unknown],
            by_variant(costs_s),
            shared_s,
            self._spending.left_s(self._spending.deadline_ns),
            rounds=max(EARLY_STOP_ROUNDS - self.number + 1, 1),
            least=math.ceil(len(ran - unknown) / 2),
        )
        return [*chosen, *unknown]


def looks() -> Iterator[int]:
    """After how many rounds a race looks who still contends: 1, 2, 3, 4, 5, 7, 9, 12, 16, 22, 30, ..."""
    yield from range(1, EARLY_STOP_ROUNDS)
    rounds = EARLY_STOP_ROUNDS
    while True:
        yield rounds
        rounds = int(rounds * RACE_LOOKS)


def in_front(
    ranked: Sequence[str], costs_s: Mapping[str, float], shared_s: float, left_s: float, *, rounds: int, least: int
) -> list[str]:
    """Of the variants of a race, best first, those that take part in its next round. All do where the seconds left
    reach for `rounds` more rounds of all; else as many as that needs, but at least `least` if one round of them fits,
    and two. `costs_s` is what a round of each takes, `shared_s` of raw I/O.

    With half of those of the round before as `least` it is successive halving (Karnin, Koren, Somekh: Almost optimal
    exploration in multi-armed bandits, ICML 2013), of which nothing is seen where the budget is ample.
    """

    def fitting(times: int) -> int:
        sums = itertools.accumulate((costs_s[variant] for variant in ranked), initial=shared_s)
        return sum(times * spent <= left_s for spent in itertools.islice(sums, 1, None))

    return list(ranked[: max(2, min(fitting(1), max(fitting(rounds), least)))])


def racing(due: Sequence[Chain], left_out: Collection[Chain], progress: Mapping[Chain, Progress]) -> list[Chain]:
    """Of the chains that are due in a race, what has somebody to race with: variants of which nothing is left out, at
    least two of them, or one that has too few rounds to be told anything of. Raw I/O come with them."""
    broken = {chain.variant for chain in left_out if not chain.is_raw_io}
    kept = [chain for chain in due if chain.is_raw_io or chain.variant not in broken]
    runners = [chain for chain in kept if not chain.is_raw_io]
    alone = len({chain.variant for chain in runners}) < 2
    if alone and all(progress[chain].counted >= EARLY_STOP_ROUNDS for chain in runners):
        return []
    return kept
