"""Find the recipes (parameters for making a column) of the realistic tables.

    python -m data_generator.generated.calibrate > data_generator/generated/recipes.py

For each statistic, the columns of a type get targets spread evenly from the 20th to the 80th percentile of the real
columns. A column with more distinct values gets a smaller share of the most frequent value, shorter runs and less
order. Widths and null ratios are assigned to the columns in two other orders. The Zipf exponents are assigned in the
order of `_natural_exponent`, which follows from the number of distinct values and the share of the most frequent value.
Each column is then made and measured, and its recipe is corrected until the statistics are close to the targets.

Measurements do not run this module, which takes about ten minutes. Its result is stored, so that every machine uses the
same recipes. Most stored recipes come from earlier versions of this module, so a new run yields different recipes that
are equally close. New recipes need a new `realistic.VERSION`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from data_generator.generated.profile import ColumnStatistics, column_statistics, zipf_exponent
from data_generator.generated.profiles import PERCENTS, PROFILES, Percentiles, TypeProfile
from data_generator.generated.realistic import SMALL_SET, VERSION, WINDOW_ROWS, column, rank_weights
from data_generator.generated.recipe import Recipe

ROWS = 1_000_000
_ATTEMPTS = 16
_CLOSE = 0.2
_LARGEST_SKEWED_RATIO = 0.42
_STARTS = ((2.2, 1.0), (1.05, 1.0), (1.05, 0.85), (4.0, 1.0))
"""Starting points of the search. The first number is the number of slots (sequences of equal values) per distinct
value. The search aims at the target's mean run length (number of equal values in sequence), multiplied by the second
number."""


@dataclass(frozen=True)
class Targets:
    """Target statistics of one column at ROWS rows."""

    distinct_ratio: float
    distinct_least: int
    top_value_share: float
    zipf_exponent: float
    mean_run_length: float
    sortedness: float
    null_ratio: float
    width_bytes: float

    @property
    def distinct(self) -> int:
        """Distinct values at ROWS rows."""
        return max(round(self.distinct_ratio * ROWS), self.distinct_least)


def quantile(percentiles: Percentiles, percent: float) -> float:
    """Return the value at a percentile, interpolated on a logarithmic scale if all percentiles are positive."""
    if min(percentiles) > 0:
        return float(np.exp(np.interp(percent, PERCENTS, np.log(percentiles))))
    return float(np.interp(percent, PERCENTS, percentiles))


def spread(columns: int) -> list[float]:
    """Return one percentile per column, in ascending order from 20 to 80."""
    if columns == 1:
        return [50.0]
    middle = (columns - 1) / 2
    return [50.0 if abs(index - middle) < 1 else 20 + 60 * index / (columns - 1) for index in range(columns)]


def targets(profile: TypeProfile) -> list[Targets]:
    """Return the targets of all columns of a type."""
    percents = spread(profile.columns)
    made = []
    for index, percent in enumerate(percents):
        opposite = 100 - percent
        ratio = quantile(profile.distinct_ratio, percent)
        if profile.zipf_exponent[0] > 0.5:  # with more distinct values, too few repeat to follow such a power law
            ratio = min(ratio, _LARGEST_SKEWED_RATIO)
        least = max(1, min(round(quantile(profile.distinct_values, percent)), SMALL_SET))
        distinct = max(round(ratio * ROWS), least)
        top = min(1.0, max(quantile(profile.top_value_share, opposite), 1.02 / distinct))
        while distinct > 2 and _least_exponent(distinct, top) > 0.9 * profile.zipf_exponent[4]:
            top *= 0.98
        width = 0.0
        if profile.width_bytes:
            width = quantile(profile.width_bytes, percents[(index * 3 + 1) % len(percents)])
        nulls = quantile(profile.null_ratio, percents[(index * 5 + 2) % len(percents)])
        if nulls * ROWS < 10:  # too few rows for a spread
            nulls = profile.null_ratio[2]
        made.append(
            Targets(
                ratio, least, 1.0 if distinct == 1 else top, 0.0,
                quantile(profile.mean_run_length, opposite), quantile(profile.sortedness, opposite), nulls, width,
            )
        )  # fmt: skip
    order = sorted(range(len(made)), key=lambda index: _natural_exponent(made[index]))
    for percent, index in zip(percents, order, strict=True):
        exponent = quantile(profile.zipf_exponent, percent)
        top = made[index].top_value_share
        while top * made[index].distinct < 3 and _steepest_exponent(made[index].distinct, top) < exponent:
            top *= 1.03
        made[index] = replace(made[index], zipf_exponent=exponent, top_value_share=top)
    return made


def _least_exponent(distinct: int, top_share: float) -> float:
    """Return the smallest measurable Zipf exponent. It results if all values but the most frequent one are equally
    frequent."""
    counts = np.full(distinct, (1 - top_share) / (distinct - 1))
    counts[0] = top_share
    return zipf_exponent(counts)


def _steepest_exponent(distinct: int, top_share: float) -> float:
    """Return the largest Zipf exponent that can be measured if no value is more frequent than `top_share`.

    A margin is subtracted, because by chance some values are more frequent than their weights require.
    """
    laws = (rank_weights(distinct, exponent, top_share) for exponent in (0.5, 0.8, 1.2, 1.6, 2.0))
    return 0.55 * max(zipf_exponent(law) for law in laws)


def _natural_exponent(target: Targets) -> float:
    """Return the exponent of the power law in which the most frequent value has the target's share of the rows; 0 for
    fewer than three distinct values."""
    if target.distinct < 3:
        return 0.0
    log_ranks = np.log(np.arange(1, target.distinct + 1))
    low, high = 0.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2
        if 1 / np.exp(-middle * log_ranks).sum() < target.top_value_share:
            low = middle
        else:
            high = middle
    return low


Found = tuple[float, Recipe, ColumnStatistics]
"""(Largest relative error, recipe, measured statistics of the column that the recipe makes)."""


def calibrated(name: str, kind: str, target: Targets, profile: TypeProfile, path: tuple[object, ...]) -> Found:
    """Return the best recipe found. The best recipe has the fewest statistics outside the profile's range and, among
    equals, the smallest error."""

    def badness(found: Found) -> tuple[int, float]:
        return _outside(found[2], profile), found[0]

    best: Found | None = None
    for slots_per_value, run_scale in _STARTS:
        aim = replace(target, mean_run_length=max(1.0, target.mean_run_length * run_scale))
        found = _approached(name, kind, aim, path, slots_per_value)
        best = found if best is None else min(best, found, key=badness)
        if badness(best) < (1, 0) and best[0] < _CLOSE:
            break
    assert best is not None
    return best


def _outside(got: ColumnStatistics, profile: TypeProfile) -> int:
    """Return the number of statistics outside the profile's 10th to 90th percentiles."""
    names = ("sortedness", "zipf_exponent", "top_value_share", "mean_run_length")
    return sum(not getattr(profile, name)[0] <= getattr(got, name) <= getattr(profile, name)[4] for name in names)


def _approached(name: str, kind: str, target: Targets, path: tuple[object, ...], slots_per_value: float) -> Found:
    """Search for a recipe step by step. The first recipe has at least `slots_per_value` slots (sequences of equal
    values) per distinct value."""
    rest_run_length = target.mean_run_length
    while True:
        constant = (target.mean_run_length - rest_run_length) / (WINDOW_ROWS - rest_run_length + 1e-9)
        slots = (1 - constant) * ROWS / rest_run_length
        if slots > slots_per_value * target.distinct or rest_run_length <= 1.01:
            break
        rest_run_length = max(rest_run_length * 0.8, 1.01)
    recipe = Recipe(
        name, kind, target.distinct_ratio, target.distinct_least, target.zipf_exponent, target.top_value_share,
        max(0.0, constant), max(0.0, target.sortedness - constant), min(1.0, 1 / rest_run_length), target.null_ratio,
        target.width_bytes,
    )  # fmt: skip
    best: Found | None = None
    for _ in range(_ATTEMPTS):
        recipe = _rounded(recipe)
        got = column_statistics(pa.chunked_array([column(recipe, ROWS, 0, path)]))
        miss = _miss(got, target)
        if best is None or miss < best[0]:
            best = (miss, recipe, got)
        if miss < 0.01:
            break
        recipe = _corrected(recipe, got, target)
    assert best is not None
    return best


def _miss(got: ColumnStatistics, target: Targets) -> float:
    exponent = 0.0
    if got.distinct_values > 2:
        exponent = abs(got.zipf_exponent - target.zipf_exponent) / max(target.zipf_exponent, 0.2)
    return max(
        abs(np.log(got.distinct_values / target.distinct)),
        abs(np.log(got.top_value_share / target.top_value_share)),
        abs(np.log(got.mean_run_length / target.mean_run_length)),
        abs(got.sortedness - target.sortedness) / max(target.sortedness, 0.05),
        exponent,
        abs(got.width_bytes / target.width_bytes - 1) if got.width_bytes else 0.0,
    )


def _corrected(recipe: Recipe, got: ColumnStatistics, target: Targets) -> Recipe:
    """Return a recipe one step closer to the target. Each parameter is corrected by the statistic it affects most."""
    constant, boundary = recipe.constant_share, recipe.boundary
    factor = (got.mean_run_length - WINDOW_ROWS * constant) / max(
        target.mean_run_length - WINDOW_ROWS * constant, 0.02 * target.mean_run_length
    )
    boundary *= min(max(factor, 0.5), 2.0)
    if boundary > 1.05 or factor < 0 or factor > 2:
        constant += (target.mean_run_length - got.mean_run_length) / WINDOW_ROWS
    top = recipe.top_share * target.top_value_share / got.top_value_share
    width = recipe.width_bytes
    if got.width_bytes:
        width = max(width + 0.8 * (target.width_bytes - got.width_bytes), 0.0)
    constant = min(max(constant, 0.0), 1.0)
    # The exponent has less effect if the frequencies of the first ranks are capped at a lower height.
    gain = 1.2 * min(max(1.0, recipe.exponent / max(got.zipf_exponent, 0.05)), 6.0)
    return replace(
        recipe,
        exponent=min(max(recipe.exponent + gain * (target.zipf_exponent - got.zipf_exponent), 0.0), 8.0),
        top_share=min(top, 1.0 if target.distinct == 1 else 0.9999),
        constant_share=constant,
        sorted_share=min(max(recipe.sorted_share + 0.9 * (target.sortedness - got.sortedness), 0.0), 1 - constant),
        boundary=min(boundary, 1.0),
        width_bytes=width,
    )


def _rounded(recipe: Recipe) -> Recipe:
    """Return the recipe with numbers rounded to five significant digits, as recipes.py will contain them."""
    rounded: dict[str, Any] = {
        name: float(f"{value:.5g}") for name, value in vars(recipe).items() if isinstance(value, float)
    }
    return replace(recipe, **rounded)


def main() -> None:
    """Print recipes.py to stdout, and the reached statistics to stderr."""
    about = "Parameters for making each column of the realistic tables."
    print(f'"""{about} calibrate.py writes this file; do not edit it by hand."""\n')
    print("from collections.abc import Mapping\n\nfrom data_generator.generated.recipe import Recipe\n")
    print("RECIPES: Mapping[str, tuple[Recipe, ...]] = {")
    only = sys.argv[1:]
    for table, types in PROFILES.items():
        if only and table not in only:
            continue
        print(f'    "{table}": (')
        for kind, profile in types.items():
            for index, target in enumerate(targets(profile)):
                name = f"{_TITLES[kind]}_{index + 1}"
                miss, recipe, got = calibrated(name, kind, target, profile, (table, name, VERSION))
                values = ", ".join(json.dumps(value) for value in vars(recipe).values())
                print(f"        Recipe({values}),", flush=True)
                print(f"{table}.{name}: miss {miss:.3f}\n  {target}\n  {got}\n  {recipe}", file=sys.stderr)
        print("    ),")
    print("}")


_TITLES = {"float64": "measure", "int64": "number", "string": "text"}

if __name__ == "__main__":
    main()
