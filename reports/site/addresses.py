"""Create unique parts of addresses that work in any file system and any browser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


def slug(text: str) -> str:
    """Return `text` with only lower-case letters, digits and '-', which any file system and any browser accepts."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80] or "unnamed"


@dataclass
class Slugs:
    """Creates a unique part of an address (a slug) for each string."""

    taken: set[str] = field(default_factory=set)

    def of(self, text: str) -> str:
        """Return a slug of `text`. If another string already has this slug, a number makes the new slug unique."""
        first = slug(text)
        found, number = first, 2
        while found in self.taken:
            found, number = f"{first}-{number}", number + 1
        self.taken.add(found)
        return found


def suite_page(suite: str) -> str:
    """Return the address of a suite's page."""
    return f"suite-{slug(suite)}.html"
