"""Which components are merged: tiering as in the paper's section 6."""

from __future__ import annotations

from collections.abc import Sequence

SIZE_RATIO = 1.2
"""Components are merged if the oldest of them is at most this many times as large as the younger ones together, as in
AsterixDB's ConcurrentMergePolicy."""

MOST_COMPONENTS = 5
"""At this number a merge is due regardless of sizes, and the next flush waits for it."""


def due(sizes_bytes: Sequence[int], late: bool = False) -> int | None:
    """Return how many of the youngest components (sizes newest first) to merge; None for no merge.

    `late`: no merge while more components are allowed."""
    if late and len(sizes_bytes) < MOST_COMPONENTS:
        return None
    # Start with the oldest, so that one merge does the work of several smaller ones.
    for end in range(len(sizes_bytes) - 1, 0, -1):
        if sizes_bytes[end] <= SIZE_RATIO * sum(sizes_bytes[:end]):
            return end + 1
    if len(sizes_bytes) < MOST_COMPONENTS:
        return None
    return 1 + min(range(1, len(sizes_bytes)), key=lambda end: sizes_bytes[end] / max(1, sum(sizes_bytes[:end])))
