"""Remove the speed of each round from times, so that variants with different rounds can be compared.

In a recommendation, slow variants are no longer measured after some rounds. A variant with five rounds was therefore
measured at another time than a variant with fifty. Without a correction, comparing their medians would also compare the
speed of the machine at these times. The model is: the logarithm of a time is the effect of its variant plus the effect
of its round (two-way additive, fitted by least squares). The effect of the round is removed. Ratios of one figure
within a round do not change.

Median polish would be more robust against single slow samples, but it fails here. If most variants have only the early
rounds, median polish attributes the speed of these rounds to the variants, and its first sweep corrects nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import numpy as np

from bench_runner.variants import Variant


def without_round_effect(figures: Mapping[Variant, Mapping[int, float]]) -> dict[Variant, dict[int, float]]:
    """Return one figure (variant -> round -> value above 0), corrected so that all rounds have the same speed.

    If all variants have the same rounds, the figure is not changed, because then no variant gains by a fast round.
    """
    taking_part = {variant: by_round for variant, by_round in figures.items() if by_round}
    if len({frozenset(by_round) for by_round in taking_part.values()}) <= 1:
        return {variant: dict(by_round) for variant, by_round in figures.items()}
    speeds = _speeds(taking_part)
    return {
        variant: {number: value / math.exp(speeds[number]) for number, value in by_round.items()}
        for variant, by_round in figures.items()
    }


def _speeds(figures: Mapping[Variant, Mapping[int, float]]) -> dict[int, float]:
    """Return the effect of each round on the logarithm of a time. The median round has the effect 0."""
    rounds = sorted({number for by_round in figures.values() for number in by_round})
    column = {number: len(figures) + place for place, number in enumerate(rounds)}
    rows, distances = [], []
    for place, by_round in enumerate(figures.values()):
        # Times are relative to the variant's own median, so that rounds without a common variant get equal effects.
        middle = statistics.median(map(math.log, by_round.values()))
        for number, value in by_round.items():
            rows.append((place, column[number]))
            distances.append(math.log(value) - middle)
    design = np.zeros((len(rows), len(figures) + len(rounds)))
    for which, at in enumerate(rows):
        design[which, at] = 1.0
    fitted, *_ = np.linalg.lstsq(design, np.array(distances))
    speeds = dict(zip(rounds, fitted[len(figures) :].tolist(), strict=True))
    middle = statistics.median(speeds.values())
    return {number: speed - middle for number, speed in speeds.items()}
