"""Which components are merged: tiering as in the paper's section 6."""

from __future__ import annotations

from collections.abc import Sequence

SIZE_RATIO = 1.2
"""Components are merged if the oldest of them is at most that many times as large as the younger ones together, as
AsterixDB's ConcurrentMergePolicy has it."""

MOST_COMPONENTS = 5
"""At so many a merge is due whatever the sizes, and the next flush waits for it."""


def due(sizes_bytes: Sequence[int], late: bool = False) -> int | None:
    """How many of the youngest components (sizes newest first) are to become one; None if none are. `late`: none as
    long as there may be more of them."""
    if late and len(sizes_bytes) < MOST_COMPONENTS:
        return None
    # From the oldest on, so that one merge does what several smaller ones would do one after the other.
    for end in range(len(sizes_bytes) - 1, 0, -1):
        if sizes_bytes[end] <= SIZE_RATIO * sum(sizes_bytes[:end]):
            return end + 1
    if len(sizes_bytes) < MOST_COMPONENTS:
        return None
    return 1 + min(range(1, len(sizes_bytes)), key=lambda end: sizes_bytes[end] / max(1, sum(sizes_bytes[:end])))
