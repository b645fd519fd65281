"""Figures freed from how fast the machine was in each round, so that few rounds and many stand beside each other.

Who left after five rounds was measured at another hour than who stayed for fifty: medians of their own rounds would
compare the hours. In the logarithm a figure is taken as what its variant makes it and what its round does, both found
by Tukey's median polish (Exploratory Data Analysis, 1977, chapter 11), and what the round does is taken out. Ratios
within a round do not change by that. A pure function of values by round.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

SWEEPS, STILL = 50, 1e-6
"""At most so many, until no round moves by more. In read times of 14 runs of 20 variants and 7 to 9 rounds, the tenth
moved none by more than 1 in 10,000."""


def levelled(figures: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """One figure, variant -> round -> value > 0, as if all rounds had been alike; untouched where all have the same
    rounds, because then nobody gains by a fast one."""
    taking_part = {variant: by_round for variant, by_round in figures.items() if by_round}
    if len({frozenset(by_round) for by_round in taking_part.values()}) <= 1:
        return {variant: dict(by_round) for variant, by_round in figures.items()}
    speeds = _polished(
        {
            variant: {number: math.log(value) for number, value in by_round.items()}
            for variant, by_round in taking_part.items()
        }
    )
    return {
        variant: {number: value / math.exp(speeds[number]) for number, value in by_round.items()}
        for variant, by_round in figures.items()
    }


def _polished(logs: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """What each round adds to the logarithms; 0 in the round in the middle."""
    rounds = sorted({number for by_round in logs.values() for number in by_round})
    speeds = dict.fromkeys(rounds, 0.0)
    for _ in range(SWEEPS):
        own = {
            variant: statistics.median(value - speeds[number] for number, value in by_round.items())
            for variant, by_round in logs.items()
        }
        before = speeds
        speeds = {
            number: statistics.median(
                by_round[number] - own[variant] for variant, by_round in logs.items() if number in by_round
            )
            for number in rounds
        }
        if max(abs(speeds[number] - before[number]) for number in rounds) < STILL:
            break
    middle = statistics.median(speeds.values())
    return {number: speed - middle for number, speed in speeds.items()}
