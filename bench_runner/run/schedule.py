"""Which chains run in which round, and in which order (method rule 15).

Rounds are the outer loop, so that slow drift hits all alike; within a round the order is shuffled by the run's seed,
dear chains last. A cell leaves when it has its rounds, when its interval is narrow enough, or when it fails again, and
a chain when none of its cells is left. Races and budgets choose among the chains that are due here: see
bench_runner.run.race and bench_runner.run.budget.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench_runner.conditions import same_for_raw_io
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample
from bench_runner.results.statistics import half_width
from bench_runner.run.prediction import Prediction, seen

EARLY_STOP_ROUNDS = 5
"""From so many rounds on a cell stops whose interval is narrow, and a race may drop a variant (rule 15)."""
EARLY_STOP_HALF_WIDTH = 0.05
"""An interval is narrow whose half is under this share of its median (rule 15)."""
EXTRA_ROUNDS = 2
"""Rounds beyond the planned ones that make up for samples which were not counted (rules 1 and 15). Who is compared with
such a cell takes part in them until both have the rounds of a verdict in common."""
FAILURES_ALLOWED = 2
"""After so many failed rounds a cell is given up, after the first where it had no pilot round (rule 15)."""


@dataclass
class Progress:
    """What is known of one chain so far."""

    operations: tuple[str, ...]
    """Those that may run: an operation that failed on few rows already is none of them."""
    walls_ns: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    rounds: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Those in which an operation was counted."""
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, samples: Sequence[Sample]) -> None:
        """Take in one execution of a counted round."""
        for sample in samples:
            self.failures[sample.operation] += sample.failure is not None
            # As in statistics: what nothing verified, or nobody asked for, tells nothing of its cell.
            if sample.counted and not sample.in_service:
                self.walls_ns[sample.operation].append(sample.figures["wall_ns"])
                self.rounds[sample.operation].add(sample.round)

    @property
    def counted(self) -> int:
        """Rounds in which every operation was counted; the least over operations."""
        return min((len(self.walls_ns[operation]) for operation in self.operations), default=0)

    def narrow(self, operation: str) -> bool:
        """Whether an operation's interval is narrow enough to stop."""
        walls_ns = self.walls_ns[operation]
        width = half_width(walls_ns) if len(walls_ns) >= EARLY_STOP_ROUNDS else None
        return width is not None and width < EARLY_STOP_HALF_WIDTH


class Schedule:
    """Hands out the rounds."""

    def __init__(self, predictions: Mapping[Chain, Prediction], *, seed: int, rounds: int | None) -> None:
        """`predictions` holds the chains that may run. `rounds` is the number for all of them, or None for the method's
        own (7, 3 over 10 s, 1 over 60 s, and an early stop)."""
        self._predictions = dict(predictions)
        self._seed = seed
        self._asked = rounds
        self._held_back: frozenset[str] = frozenset()
        self._late: frozenset[str] = frozenset()
        self._released = 0
        self._let_run: frozenset[str] | None = None
        self.progress = {
            chain: Progress(tuple(name for name in chain.operations if name in prediction.walls_ns))
            for chain, prediction in predictions.items()
        }

    def planned_rounds(self, chain: Chain, operation: str) -> int:
        """How many rounds a cell is to get: by the slowest operation that a sample of it takes."""
        if self._asked is not None:
            return self._asked
        if chain.is_raw_io:
            companions = self._companions(chain)
            return max(self._predictions[other].rounds(other.needed_for([operation])) for other in companions)
        return self._predictions[chain].rounds(chain.needed_for([operation]))

    def let_run(self, variants: Iterable[str]) -> None:
        """From now on only chains of these variants take part, until others are named."""
        self._let_run = frozenset(variants)

    def hold_back(self, variants: Iterable[str]) -> None:
        """These variants wait until `release`."""
        self._held_back = self._late = frozenset(variants)

    def release(self, number: int) -> bool:
        """Whether anybody waited: they take part from round `number` on, which is the first for them."""
        waited, self._held_back = bool(self._held_back), frozenset()
        self._released = number - 1
        return waited

    def learn(self, chain: Chain, samples: Sequence[Sample]) -> None:
        """Take in one execution of a counted round: what was predicted without a pilot round is known better now."""
        self.progress[chain].add(samples)
        self._predictions[chain] = seen(self._predictions[chain], samples)

    def due(self, number: int) -> list[Chain]:
        """The chains of round `number`, from 1, in the order in which they run. Raw I/O takes part as long as
        another chain of its data set does."""
        wanting = [chain for chain in self._predictions if not chain.is_raw_io and self._wants(chain, number)]
        yardsticks = [
            chain
            for chain in self._predictions
            if chain.is_raw_io
            and (self._shared_by(chain, wanting) or (self._companions(chain) == [chain] and self._wants(chain, number)))
        ]
        return self.ordered([*wanting, *yardsticks], number)

    def ordered(self, chains: Sequence[Chain], number: int) -> list[Chain]:
        """Shuffle by the seed and the round; dear ones come as a shuffled last block."""
        generator = random.Random(f"{self._seed}/{number}")
        # The order in which chains were planned must not decide: sort first, then shuffle.
        rows = sorted(chains, key=lambda chain: (chain.label(), repr(chain.conditions)))
        cheap = [chain for chain in rows if not self._predictions[chain].dear]
        dear = [chain for chain in rows if self._predictions[chain].dear]
        generator.shuffle(cheap)
        generator.shuffle(dear)
        return cheap + dear

    def remaining_rounds(self, chain: Chain) -> int:
        """At most this many more executions."""
        return max((self._remaining(chain, operation) for operation in self.progress[chain].operations), default=0)

    def wanted(self, chain: Chain, number: int) -> tuple[str, ...]:
        """The operations of a chain whose cells want a sample in round `number`. Raw I/O gives one of each that
        another chain of its data set has."""
        if chain.is_raw_io:
            return self.progress[chain].operations
        return tuple(name for name in self.progress[chain].operations if self._cell_wants(chain, name, number))

    def _is_given_up(self, chain: Chain, operation: str) -> bool:
        progress = self.progress[chain]
        proven = self._predictions[chain].piloted or progress.walls_ns[operation]
        return progress.failures[operation] >= (FAILURES_ALLOWED if proven else 1)

    def _remaining(self, chain: Chain, operation: str) -> int:
        progress = self.progress[chain]
        if self._is_given_up(chain, operation):
            return 0
        if self._asked is None and progress.narrow(operation):
            return 0
        return max(self.planned_rounds(chain, operation) - len(progress.walls_ns[operation]), 0)

    def _cell_wants(self, chain: Chain, operation: str, number: int) -> bool:
        within = number - self._released <= self.planned_rounds(chain, operation) + EXTRA_ROUNDS
        return within and (self._remaining(chain, operation) > 0 or self._lacks_a_verdict(chain, operation, number))

    def _lacks_a_verdict(self, chain: Chain, operation: str, number: int) -> bool:
        """Whether a cell that has its rounds takes part once more: beside another one it has too few rounds in common
        for a verdict, because one of them was not counted in some, and those left make them enough."""
        own = number - (self._released if chain.variant in self._late else 0)
        left = self.planned_rounds(chain, operation) + EXTRA_ROUNDS - own + 1
        if own <= EARLY_STOP_ROUNDS or left < 1 or not self._may_have_a_verdict(chain, operation):
            return False
        counted = self.progress[chain].rounds[operation]
        return any(
            EARLY_STOP_ROUNDS - left <= len(counted & self.progress[other].rounds[operation]) < EARLY_STOP_ROUNDS
            for other in self._predictions
            if _are_compared(chain, other)
            and (chain.variant in self._late) == (other.variant in self._late)
            and self._may_have_a_verdict(other, operation)
        )

    def _may_have_a_verdict(self, chain: Chain, operation: str) -> bool:
        return (
            operation in self.progress[chain].operations
            and self.planned_rounds(chain, operation) >= EARLY_STOP_ROUNDS
            and not self._is_given_up(chain, operation)
        )

    def _wants(self, chain: Chain, number: int) -> bool:
        if chain.variant in self._held_back or (self._let_run is not None and chain.variant not in self._let_run):
            return False
        return any(self._cell_wants(chain, operation, number) for operation in self.progress[chain].operations)

    def _companions(self, yardstick: Chain) -> list[Chain]:
        """The other chains that are shown as multiples of this raw I/O, or raw I/O itself where it is alone."""
        others = [chain for chain in self._predictions if not chain.is_raw_io and same_data(chain, yardstick)]
        return others or [yardstick]

    def _shared_by(self, yardstick: Chain, chains: Sequence[Chain]) -> bool:
        return any(same_data(chain, yardstick) for chain in chains)


def _are_compared(chain: Chain, other: Chain) -> bool:
    """Whether two variants stand in one table."""
    return (
        chain != other
        and not chain.is_raw_io
        and not other.is_raw_io
        and (chain.suite, chain.dataset, chain.conditions) == (other.suite, other.dataset, other.conditions)
    )


def same_data(chain: Chain, yardstick: Chain) -> bool:
    """Whether the figures of a chain are shown as multiples of this raw I/O."""
    same_place = (chain.suite, chain.dataset) == (yardstick.suite, yardstick.dataset)
    return same_place and same_for_raw_io(chain.conditions, yardstick.conditions)


class Rounds:
    """Rounds of every chain that the schedule wants, without a budget."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.number = 0
        """Of the round that `next_round` has returned last."""

    def next_round(self) -> Sequence[Chain]:
        """The chains of the next round, in order; empty when the rounds have ended."""
        self.number += 1
        return self._schedule.due(self.number)

    def fits(self, chain: Chain) -> bool:
        """Whether there is still time for a chain of this round."""
        return True
