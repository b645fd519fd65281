"""How far a figure is from the best, in five bands, with the colour of each; and the colours of lines.

PDF and site show the same.
The site gives the bands colours of its own for light and for dark; the limits and the words are these.
"""

from __future__ import annotations

from bench_runner.results.statistics import Ratio

BANDS = (
    (1.0, "#08306b", "best, or tied with it"),
    (2.0, "#2f7fbc", "under 2 times the best"),
    (5.0, "#8fc1de", "2 to 5 times"),
    (20.0, "#fdb863", "5 to 20 times"),
    (float("inf"), "#b35806", "over 20 times"),
)
"""Upper end of the ratio to the best, colour, meaning. From ColorBrewer's blue to brown, which every common
kind of colour blindness keeps apart; the order of lightness also holds in grey at both ends."""


def band_of(ratio: Ratio) -> int:
    """The place of a ratio in BANDS; what is tied with the best is with it."""
    return 0 if ratio.tied else band_of_mean(ratio.ratio)


def band_of_mean(ratio: float) -> int:
    """The place of a mean of ratios, which has no tie."""
    return next(place for place, (end, _, _) in enumerate(BANDS) if ratio <= end)


LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#882255", "#444444")
"""Of variants that are lines, by their style: after Okabe and Ito, which every common kind of colour blindness keeps
apart, with a darker yellow. A ninth has the first one's colour again, and is dashed."""
