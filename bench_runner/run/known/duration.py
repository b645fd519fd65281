"""Estimate the duration of a run, and of each format in the run, from earlier runs on this machine or on other
machines.

Nothing is measured for the estimate. The estimate is shown before a run and affects no decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.plan.chain import Chain, Plan
from bench_runner.run.known.costs import Cost, KnownCosts
from bench_runner.run.options import Options
from bench_runner.run.prediction import SMALL_ROWS, Prediction, pilot_rows
from bench_runner.run.schedule import EARLY_STOP_ROUNDS

START_S = 8.0
"""Expected duration of the first part of a run, before data are made: loading libraries, reading facts about the
machine, and the short check of the memory probe."""
HERE_LOW, HERE_HIGH = 0.85, 1.2
"""Actual durations on the same machine are between HERE_LOW and HERE_HIGH times the predicted durations. Noise and
repeated samples cause the difference."""
ELSEWHERE_FACTOR = 2.0
"""Assumed factor between the actual duration of a run and a prediction from other machines."""


@dataclass(frozen=True)
class Length:
    """The expected duration of a run, between `low_s` and `high_s` seconds."""

    low_s: float
    high_s: float
    by_format: Mapping[str, float]
    """Expected seconds of each format, slowest first."""
    here: bool
    """Whether the estimate uses only costs of this machine."""
    unknown: tuple[str, ...]
    """Variants without known costs. The expected seconds do not include these variants."""

    @property
    def middle_s(self) -> float:
        """Expected seconds of all formats together."""
        return sum(self.by_format.values())


def expected_length(plan: Plan, options: Options, costs: KnownCosts) -> Length:
    """Return the expected duration of a planned run. A budget is ignored."""
    least_s, most_s = START_S, START_S
    by_format: defaultdict[str, float] = defaultdict(float)
    here, unknown = True, []
    for chain in plan.chains:
        rows = plan.datasets[chain.dataset].rows
        found = {operation: costs.expected(operation, chain, rows) for operation in chain.needed_for(chain.operations)}
        known = {operation: each.cost for operation, each in found.items() if each is not None}
        if not known:
            unknown.append(chain.variant)
            continue
        here = here and all(each is None or each.here for each in found.values())
        round_s = sum(cost.total_ns for cost in known.values()) / 1e9
        on_few = [cost.at(pilot_rows(rows, 0)) for cost in known.values()] if rows > SMALL_ROWS else []
        pilot_s = sum(cost.total_ns for cost in on_few) / 1e9
        fewest, most = _rounds(chain, known, options)
        least_s += fewest * round_s + pilot_s
        most_s += most * round_s + pilot_s
        by_format[chain.variant.partition("[")[0]] += most * round_s + pilot_s
    low, high = (HERE_LOW, HERE_HIGH) if here else (1 / ELSEWHERE_FACTOR, ELSEWHERE_FACTOR)
    slowest = dict(sorted(by_format.items(), key=lambda each: -each[1]))
    return Length(low * least_s, high * most_s, slowest, here, tuple(dict.fromkeys(unknown)))


def _rounds(chain: Chain, costs: Mapping[str, Cost], options: Options) -> tuple[int, int]:
    """Return the smallest and the largest number of rounds of a chain. The numbers differ because operations with a
    narrow confidence interval stop early."""
    if options.rounds_asked is not None:
        return options.rounds_asked, options.rounds_asked
    prediction = Prediction({operation: cost.timed_ns for operation, cost in costs.items()}, 0, 0)
    planned = prediction.rounds(chain.operations)
    return min(planned, EARLY_STOP_ROUNDS), planned
