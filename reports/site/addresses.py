"""Parts of addresses: what any file system and any browser takes, and none twice."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


def slug(text: str) -> str:
    """A part of an address that any file system and any browser takes: small letters, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80] or "unnamed"


@dataclass
class Slugs:
    """Gives each text an address that no other has."""

    taken: set[str] = field(default_factory=set)

    def of(self, text: str) -> str:
        """A slug of `text`, with a number where another text has it already."""
        first = slug(text)
        found, number = first, 2
        while found in self.taken:
            found, number = f"{first}-{number}", number + 1
        self.taken.add(found)
        return found


def suite_page(suite: str) -> str:
    """The address of a suite's page."""
    return f"suite-{slug(suite)}.html"
