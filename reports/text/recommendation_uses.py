"""Format the time per day that each operation takes, as columns of a recommendation's table and as a line for each
variant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from statistics import median

from bench_runner.results.statistics import median_interval
from reports.analysis.recommendation.candidates import Candidate
from reports.analysis.recommendation.daily_time import time_a_day, use_a_day
from reports.analysis.recommendation.preferences import USE, Preferences
from reports.analysis.recommendation.recommend import Recommendation
from reports.analysis.units import number_text
from reports.analysis.words import NOTHING


def own_heads(others: Collection[str], preferences: Preferences) -> list[str]:
    """Return the headers of the first columns: seconds per day, the 95 % interval of these seconds, and the size. The
    size is left out if `others` has it. Return an empty list if the ranking does not use times per day."""
    if not preferences.uses:
        return []
    return ["s a day", "(95 %)", *([] if "size" in others else ["size MB"])]


def own_cells(candidate: Candidate, values: Mapping[str, float], preferences: Preferences) -> list[str]:
    """Return the values below the headers of `own_heads`, then the other figures that have a weight. Times are
    converted from ns to ms, and sizes from bytes to MB."""
    others = [number_text(value / 1e6) for name, value in values.items() if name != USE]
    if not preferences.uses:
        return others
    interval = median_interval(list(time_a_day(candidate.figures, preferences.uses).values()))
    ends = NOTHING
    if interval.low is not None and interval.high is not None:
        ends = f"{number_text(interval.low / 1e9)}-{number_text(interval.high / 1e9)}"
    size = [number_text(median(candidate.figures["size"].values()) / 1e6)] if "size" not in values else []
    return [number_text(values[USE] / 1e9), ends, *size, *others]


def uses_told(found: Recommendation) -> Iterator[str]:
    """Yield a line for each variant with the seconds per day of each operation. The 95 % interval follows each time;
    with few rounds, minimum and maximum replace the interval."""
    for each in (*found.ranked, *found.not_accepted) if found.preferences.uses else ():
        told = []
        for use in found.preferences.uses:
            interval = median_interval(list(use_a_day(each.candidate.figures, use).values()))
            low, high = (number_text(end / 1e9) for end in interval.spread)
            instead = each.candidate.stands_in(use.operation)
            by = f" by {instead}" if instead else ""
            ends = "one round" if interval.rounds == 1 else f"{low} to {high}"
            told.append(f"{use.title}{by} {number_text(interval.median / 1e9)} s a day ({ends})")
        yield f"{each.candidate.variant}: {'; '.join(told)}"
