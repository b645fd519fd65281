"""Choose the components to merge by tiering (components of similar size are merged), as in section 6 of the paper."""

from __future__ import annotations

from collections.abc import Sequence

SIZE_RATIO = 1.2
"""Components are merged if the oldest of them is at most this many times as large as the younger ones together.
AsterixDB's ConcurrentMergePolicy uses the same value."""

MOST_COMPONENTS = 5
"""With this number of components, a merge is due for any sizes, and the next flush waits for this merge."""


def due(sizes_bytes: Sequence[int], late: bool = False) -> int | None:
    """Return how many of the youngest components to merge; None for no merge. Sizes are given newest first.

    With `late`, no merge is due before the maximum number of components is reached."""
    if late and len(sizes_bytes) < MOST_COMPONENTS:
        return None
    # Start with the oldest, so that one merge does the work of several smaller ones.
    for end in range(len(sizes_bytes) - 1, 0, -1):
        if sizes_bytes[end] <= SIZE_RATIO * sum(sizes_bytes[:end]):
            return end + 1
    if len(sizes_bytes) < MOST_COMPONENTS:
        return None
    return 1 + min(range(1, len(sizes_bytes)), key=lambda end: sizes_bytes[end] / max(1, sum(sizes_bytes[:end])))
