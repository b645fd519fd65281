"""Define five bands for the ratio to the best, with their colours, and the colours of lines.

PDF and site share the limits of the bands and their names. The site has its own colours for light and dark pages.
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
"""Upper end of the ratio to the best, colour, meaning. The colours are ColorBrewer's from blue to brown, which remain
distinct under all common kinds of colour blindness. In grey, lightness increases from both ends."""


def band_of(ratio: Ratio) -> int:
    """Return the band of a ratio; a tie with the best is in the first band."""
    return 0 if ratio.tied else band_of_mean(ratio.ratio)


def band_of_mean(ratio: float) -> int:
    """Return the band of a mean of ratios, which has no tie."""
    return next(place for place, (end, _, _) in enumerate(BANDS) if ratio <= end)


LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#882255", "#444444")
"""Colours of lines by style, after Okabe and Ito (with a darker yellow), which remain distinct under all common kinds
of colour blindness. The ninth line has the first colour again, and is dashed."""
