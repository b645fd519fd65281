"""The rounds of a race: a run of `recommend` that continues while more than one variant may still be the best (rule
15)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from bench_runner.plan.chain import Chain
from bench_runner.results.records import read_run
from bench_runner.results.statistics import FEWEST_ROUNDS
from bench_runner.run.budget import Spending, by_variant, within_budget
from bench_runner.run.schedule import Progress, Rounds, Schedule
from bench_runner.run.session import Race

RACE_LOOKS = 1.4
"""A race checks after each of the first five rounds whether variants are worse. From then on, the round of the next
check is this factor times the round of the last check (rule 15). With a check after every round, each variant would at
some point look worse by chance."""
MOST_RACE_ROUNDS = 200
"""Largest number of rounds of a race, unless the budget or a decision ends the race earlier."""


class RaceRounds(Rounds):
    """The rounds of a race. Each round executes the variants that may still win. The race ends when the remaining time
    is too short for measuring all of these variants."""

    def __init__(self, race: Race, schedule: Schedule, spending: Spending, folder: Path) -> None:
        """`folder` is the result folder of the run, which has the samples so far."""
        super().__init__(schedule)
        self._race, self._spending, self._folder = race, spending, folder
        self._looks = looks()
        self._look = next(self._looks)
        self._last_round: Sequence[Chain] = ()

    def next_round(self) -> Sequence[Chain]:
        """Return the chains of the next round, in order; empty when the race has ended."""
        self.number += 1
        if self.number > self._look:
            self._look = next(self._looks)
            self._schedule.let_run(self._contending())
        due = wanted = self._schedule.due(self.number)
        if self._spending.deadline_ns is not None and self.number > 1:
            seconds = {chain: self._spending.seconds_of(chain, [self.number]) for chain in wanted}
            due = within_budget(wanted, seconds, self._spending.left_s(self._spending.deadline_ns))
        if self.number > FEWEST_ROUNDS:
            due = racing(due, {*wanted} - {*due}, self._schedule.progress)
        self._last_round = due
        return due

    def _contending(self) -> Sequence[str]:
        """Return the variants of the next round. With a budget, these are only the best variants, and only as many as
        can get enough rounds for a comparison. Variants without a counted round cannot be ranked. These variants take
        part until they have failed too often."""
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
            rounds=max(FEWEST_ROUNDS - self.number + 1, 1),
            least=math.ceil(len(ran - unknown) / 2),
        )
        return [*chosen, *unknown]


def looks() -> Iterator[int]:
    """Yield the numbers of the rounds after which a race checks which variants may still win: 1, 2, 3, 4, 5, 7, 9, 12,
    16, 22, 30, ..."""
    yield from range(1, FEWEST_ROUNDS)
    rounds = FEWEST_ROUNDS
    while True:
        yield rounds
        rounds = int(rounds * RACE_LOOKS)


def in_front(
    ranked: Sequence[str], costs_s: Mapping[str, float], shared_s: float, left_s: float, *, rounds: int, least: int
) -> list[str]:
    """Return the variants that take part in the next round. They are the first variants of `ranked`, in which the best
    variant comes first.

    As many variants take part as can have `rounds` more rounds within `left_s` seconds. If these are fewer than `least`
    variants, `least` variants take part, or only as many as can have one round in this time. There are always at least
    two variants, unless `ranked` has fewer. `costs_s` has the duration of one round of each variant. `shared_s` is the
    duration of the part of a round that does not depend on this selection, such as raw I/O.

    If `least` is half of the variants of the last round, this is successive halving (Karnin, Koren, Somekh: Almost
    optimal exploration in multi-armed bandits, ICML 2013). With an ample budget, no variant is dropped here.
    """

    def fitting(times: int) -> int:
        sums = itertools.accumulate((costs_s[variant] for variant in ranked), initial=shared_s)
        return sum(times * spent <= left_s for spent in itertools.islice(sums, 1, None))

    return list(ranked[: max(2, min(fitting(1), max(fitting(rounds), least)))])


def racing(due: Sequence[Chain], left_out: Collection[Chain], progress: Mapping[Chain, Progress]) -> list[Chain]:
    """Return the chains of `due` that the next round executes. If one chain of a variant is in `left_out`, all chains
    of that variant are dropped; raw I/O is always kept. Return an empty list, which ends the race, if fewer than two
    variants remain, and all chains of these variants have enough rounds for a comparison."""
    broken = {chain.variant for chain in left_out if not chain.is_raw_io}
    kept = [chain for chain in due if chain.is_raw_io or chain.variant not in broken]
    runners = [chain for chain in kept if not chain.is_raw_io]
    alone = len({chain.variant for chain in runners}) < 2
    if alone and all(progress[chain].counted >= FEWEST_ROUNDS for chain in runners):
        return []
    return kept
