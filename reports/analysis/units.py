"""Format numbers for display: units, significant digits, spreads.

Figures are stored as integers with their unit in the name.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.results.statistics import Interval


@dataclass(frozen=True)
class Unit:
    """A display unit. `scale` is the number of stored units in one display unit."""

    name: str
    scale: float

    def text(self, value: float) -> str:
        """Return `value`, in the stored unit, with three significant digits and at most three decimals."""
        return number_text(value / self.scale)


SECONDS, MILLISECONDS = Unit("s", 1e9), Unit("ms", 1e6)
MEGABYTES, KILOBYTES = Unit("MB", 1e6), Unit("kB", 1e3)
"""Decimal units, as in the thesis and in file managers: 1 MB = 1,000,000 bytes."""


def number_text(number: float) -> str:
    """Return a number with three significant digits, at most three decimals and no exponent: 0.041, 2.65, 5,212."""
    for decimals, limit in ((3, 1), (2, 10), (1, 100)):
        text = f"{number:.{decimals}f}"
        if float(text) < limit:
            return text
    return f"{number:,.0f}"


def spread_text(interval: Interval) -> str:
    """Return the uncertainty of a median in percent: '±3%' is half of the 95 % interval. Under five rounds, '-2+4%' are
    the distances to the minimum and to the maximum. For a single round, return ''."""
    if interval.median <= 0 or interval.rounds == 1:
        return ""
    low, high = ((value - interval.median) / interval.median * 100 for value in interval.spread)
    if interval.low is not None:
        return f"±{(high - low) / 2:.0f}%"
    return f"-{abs(low):.0f}+{high:.0f}%"
