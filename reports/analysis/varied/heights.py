"""Place the labels of several lines so that they do not overlap."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def heights_apart(heights: Sequence[float], gap: float, sizes: Sequence[float] = ()) -> list[float]:
    """Return a height for the label at the end of each line, in the order of `heights`.

    Each label is as near to its line as possible, at least `gap` from the next label, and between 0 and 1. `heights`
    are the heights of the line ends as shares of the chart's height, measured from the bottom. `sizes` are the heights
    of the labels, as multiples of the usual label height.
    """
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    sizes = [sizes[place] if sizes else 1.0 for place in order]
    gaps = [gap * (one + next_one) / 2 for one, next_one in itertools.pairwise(sizes)]
    placed: list[float] = []
    for number, place in enumerate(order):
        placed.append(max(heights[place], placed[-1] + gaps[number - 1] if placed else 0.0))
    highest = 1.0
    for number in range(len(placed) - 1, -1, -1):
        placed[number] = min(placed[number], highest)
        highest = placed[number] - gaps[number - 1] if number else highest
    found = dict(zip(order, placed, strict=True))
    return [found[place] for place in range(len(heights))]
