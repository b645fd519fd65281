"""Define five bands for the ratio to the best, with their colours, and the colours of lines.

The PDF and the site use the same limits and names of the bands. The site has its own colours for light and dark pages.
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
"""For each band: the largest ratio to the best, the colour, and the meaning. The colours are from ColorBrewer. They go
from blue to brown and remain distinct under all common kinds of colour blindness. Printed in grey, the bands become
lighter from both ends to the middle."""


def band_of(ratio: Ratio) -> int:
    """Return the index of the band of a ratio. A ratio that is tied with the best is in the first band."""
    return 0 if ratio.tied else band_of_mean(ratio.ratio)


def band_of_mean(ratio: float) -> int:
    """Return the index of the band of a mean of ratios. A mean is never tied with the best."""
    return next(place for place, (end, _, _) in enumerate(BANDS) if ratio <= end)


LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#882255", "#444444")
"""Colours of chart lines by the number of their style, after Okabe and Ito with a darker yellow. They remain distinct
under all common kinds of colour blindness. The ninth line has the first colour again, and is dashed."""
