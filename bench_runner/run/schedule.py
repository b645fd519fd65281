"""Decide which chains are executed in which round, and in which order (rule 15 of docs/method.md).

A chain is one save followed by the operations that read the saved copy. A cell is one operation of a chain. Each round
executes every chain once, so that a slow drift of the machine affects all chains equally. Within a round the order is
shuffled with the run's seed, and slow chains come last. A cell is done when it has its planned rounds, when its
confidence interval is narrow enough, or when it keeps failing. A chain is done when all of its cells are done.
bench_runner.run.race and bench_runner.run.budget select from the chains that this module returns for a round.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench_runner.conditions import same_for_raw_io
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample
from bench_runner.results.statistics import FEWEST_ROUNDS, half_width
from bench_runner.run.prediction import Prediction, seen

EARLY_STOP_ROUNDS = 7
"""A cell with a narrow interval stops after this many rounds (rule 15). In simulations, stopping after five rounds
lowered the coverage of intervals to 92 %."""
EARLY_STOP_HALF_WIDTH = 0.05
"""A confidence interval of a median is narrow if half of its width is below this share of the median (rule 15)."""
EXTRA_ROUNDS = 2
"""Number of extra rounds to replace samples that statistics cannot use (rules 1 and 15). Cells are compared over the
rounds that they have in common. So a cell that lost samples is repeated together with the cells of other variants."""
FAILURES_ALLOWED = 2
"""A cell is no longer measured after this many failed rounds. If it had no pilot round and never succeeded, one failed
round is enough (rule 15)."""


@dataclass
class Progress:
    """The usable rounds and the failures of one chain so far."""

    operations: tuple[str, ...]
    """The operations that may be executed. Operations that failed in the pilot round are excluded."""
    walls_ns: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    rounds: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """For each operation, the rounds with a sample that statistics use."""
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, samples: Sequence[Sample]) -> None:
        """Add the samples of one execution in a counted round."""
        for sample in samples:
            self.failures[sample.operation] += sample.failure is not None
            # As in statistics, ignore samples that are not counted, and samples that the user did not request.
            if sample.counted and not sample.in_service:
                self.walls_ns[sample.operation].append(sample.figures["wall_ns"])
                self.rounds[sample.operation].add(sample.round)

    @property
    def counted(self) -> int:
        """Number of usable samples of the operation that has the fewest."""
        return min((len(self.walls_ns[operation]) for operation in self.operations), default=0)

    def narrow(self, operation: str) -> bool:
        """Return whether the confidence interval of an operation's time is so narrow that no more rounds are needed."""
        walls_ns = self.walls_ns[operation]
        width = half_width(walls_ns) if len(walls_ns) >= EARLY_STOP_ROUNDS else None
        return width is not None and width < EARLY_STOP_HALF_WIDTH


class Schedule:
    """Decides which chains are due in each round."""

    def __init__(self, predictions: Mapping[Chain, Prediction], *, seed: int, rounds: int | None) -> None:
        """`predictions` has the chains that may be executed, with their predicted times. `rounds` is the number of
        rounds of every chain. With None, the number depends on the predicted time: 9 rounds up to 1 s, 7 up to 10 s, 3
        up to 60 s, and otherwise 1. With None, a cell also stops early if its confidence interval is narrow."""
        self._predictions = dict(predictions)
        self._seed = seed
        self._asked = rounds
        self._held_back: frozenset[str] = frozenset()
        self._late: frozenset[str] = frozenset()
        self._released = 0
        self._let_run: frozenset[str] | None = None
        self._paused: frozenset[tuple[str, str]] = frozenset()
        self.progress = {
            chain: Progress(tuple(name for name in chain.operations if name in prediction.walls_ns))
            for chain, prediction in predictions.items()
        }

    def planned_rounds(self, chain: Chain, operation: str) -> int:
        """Return the planned number of rounds of one operation of a chain. It depends on the slowest operation that
        must be executed for a sample, e.g. the save before a read."""
        if self._asked is not None:
            return self._asked
        if chain.is_raw_io:
            companions = self._companions(chain)
            return max(self._predictions[other].rounds(other.needed_for([operation])) for other in companions)
        return self._predictions[chain].rounds(chain.needed_for([operation]))

    def let_run(self, variants: Iterable[str]) -> None:
        """Execute only chains of these variants, until the next call of this method."""
        self._let_run = frozenset(variants)

    def pause(self, cells: Iterable[tuple[str, str]]) -> None:
        """Stop measuring these pairs of variant and operation. The operation of a pair is still executed if another
        operation depends on it, as a read depends on a save."""
        self._paused = frozenset(cells)

    def hold_back(self, variants: Iterable[str]) -> None:
        """Exclude these variants until `release` is called."""
        self._held_back = self._late = frozenset(variants)

    def release(self, number: int) -> bool:
        """Include the variants that `hold_back` excluded. Round `number` is the first round of these variants. Return
        whether any variants were excluded."""
        waited, self._held_back = bool(self._held_back), frozenset()
        self._released = number - 1
        return waited

    def learn(self, chain: Chain, samples: Sequence[Sample]) -> None:
        """Add the samples of one execution of a chain. If the chain had no pilot round, replace its predicted times by
        the times of the samples."""
        self.progress[chain].add(samples)
        self._predictions[chain] = seen(self._predictions[chain], samples)

    def due(self, number: int) -> list[Chain]:
        """Return the chains of round `number` in the order of execution. The first round has number 1. Raw I/O (a plain
        write and read) takes part as long as another chain on the same data takes part."""
        wanting = [chain for chain in self._predictions if not chain.is_raw_io and self._wants(chain, number)]
        yardsticks = [
            chain
            for chain in self._predictions
            if chain.is_raw_io
            and (self._shared_by(chain, wanting) or (self._companions(chain) == [chain] and self._wants(chain, number)))
        ]
        return self.ordered([*wanting, *yardsticks], number)

    def ordered(self, chains: Sequence[Chain], number: int) -> list[Chain]:
        """Return the chains in random order, determined by the seed and the round number. The slow chains come last,
        also in random order."""
        generator = random.Random(f"{self._seed}/{number}")
        # Sort before shuffling, so that the result does not depend on the order of the plan.
        rows = sorted(chains, key=lambda chain: (chain.label(), repr(chain.conditions)))
        fast = [chain for chain in rows if not self._predictions[chain].is_slow]
        slow = [chain for chain in rows if self._predictions[chain].is_slow]
        generator.shuffle(fast)
        generator.shuffle(slow)
        return fast + slow

    def remaining_rounds(self, chain: Chain) -> int:
        """Return the number of rounds that the chain still needs. The operation that needs the most rounds decides."""
        return max((self._remaining(chain, operation) for operation in self.progress[chain].operations), default=0)

    def wanted(self, chain: Chain, number: int) -> tuple[str, ...]:
        """Return the operations of a chain that need a sample in round `number`. For raw I/O these are always all of
        its operations."""
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
        if (chain.variant, operation) in self._paused:
            return False
        within = number - self._released <= self.planned_rounds(chain, operation) + EXTRA_ROUNDS
        return within and (self._remaining(chain, operation) > 0 or self._lacks_a_verdict(chain, operation, number))

    def _lacks_a_verdict(self, chain: Chain, operation: str, number: int) -> bool:
        """Return whether a cell that has its planned rounds needs an extra round. Two cells can be compared if they
        have enough rounds in common. An extra round is needed if the cell has too few rounds in common with the cell of
        another variant, and if the remaining extra rounds can provide the missing rounds."""
        own = number - (self._released if chain.variant in self._late else 0)
        left = self.planned_rounds(chain, operation) + EXTRA_ROUNDS - own + 1
        if own <= FEWEST_ROUNDS or left < 1 or not self._may_have_a_verdict(chain, operation):
            return False
        counted = self.progress[chain].rounds[operation]
        return any(
            FEWEST_ROUNDS - left <= len(counted & self.progress[other].rounds[operation]) < FEWEST_ROUNDS
            for other in self._predictions
            if _are_compared(chain, other)
            and (chain.variant in self._late) == (other.variant in self._late)
            and self._may_have_a_verdict(other, operation)
        )

    def _may_have_a_verdict(self, chain: Chain, operation: str) -> bool:
        return (
            operation in self.progress[chain].operations
            and self.planned_rounds(chain, operation) >= FEWEST_ROUNDS
            and not self._is_given_up(chain, operation)
        )

    def _wants(self, chain: Chain, number: int) -> bool:
        if chain.variant in self._held_back or (self._let_run is not None and chain.variant not in self._let_run):
            return False
        return any(self._cell_wants(chain, operation, number) for operation in self.progress[chain].operations)

    def _companions(self, yardstick: Chain) -> list[Chain]:
        """Return the chains whose figures reports divide by the figures of `yardstick`, a chain of raw I/O. If there
        are no such chains, return a list with only `yardstick`."""
        others = [chain for chain in self._predictions if not chain.is_raw_io and same_data(chain, yardstick)]
        return others or [yardstick]

    def _shared_by(self, yardstick: Chain, chains: Sequence[Chain]) -> bool:
        return any(same_data(chain, yardstick) for chain in chains)


def _are_compared(chain: Chain, other: Chain) -> bool:
    """Return whether two chains are different variants that one table of a report compares."""
    return (
        chain != other
        and not chain.is_raw_io
        and not other.is_raw_io
        and (chain.suite, chain.dataset, chain.conditions) == (other.suite, other.dataset, other.conditions)
    )


def same_data(chain: Chain, yardstick: Chain) -> bool:
    """Return whether reports divide the figures of `chain` by the figures of `yardstick`, a chain of raw I/O. This
    requires the same suite, data set and conditions that affect raw I/O."""
    same_place = (chain.suite, chain.dataset) == (yardstick.suite, yardstick.dataset)
    return same_place and same_for_raw_io(chain.conditions, yardstick.conditions)


class Rounds:
    """The rounds of a run without a budget. Each round executes all chains that the schedule returns."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.number = 0
        """The number of the round that `next_round` returned last."""

    def next_round(self) -> Sequence[Chain]:
        """Return the chains of the next round, in order; empty after the last round."""
        self.number += 1
        return self._schedule.due(self.number)

    def fits(self, chain: Chain) -> bool:
        """Return whether there is still time for a chain of this round."""
        return True
