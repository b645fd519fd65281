"""Figures under a title, a line for each label: what every output shows as a grid of text.

It knows neither what the figures are of, nor where they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Figures under a title, a line for each label; `notes` say what they mean."""

    title: str
    corner: str
    headers: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()
