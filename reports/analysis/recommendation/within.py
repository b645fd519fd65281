"""Advice on the settings of one format: the default, the best single change and the best combination of changes.

A change is advised only if its score is better than the default's beyond chance, and by at least LEAST_GAIN. If several
variants are tied with the best, the one with the fewest changes is advised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_runner.variants import Variant
from reports.analysis.recommendation.recommend import Ranked, Recommendation, against

LEAST_GAIN = 0.05
"""Smallest gain that is worth a change. Readers of the code must understand each setting, which a smaller gain does not
justify."""
DEFAULT, SINGLE, COMBINED = "default", "best single change", "best combination"


@dataclass(frozen=True)
class Change:
    """A variant with changed settings that was proposed for measuring. `text` describes the changes and `parts` counts
    them. For the default, `text` is empty and `parts` is 0."""

    variant: Variant
    text: str
    parts: int
    arguments: Mapping[str, Any]
    sorted_by: str | None


@dataclass(frozen=True, eq=False)
class Row:
    """A variant compared with the default. All scores and ratios are relative to the default, which has 1."""

    title: str
    change: Change
    ranked: Ranked


@dataclass(frozen=True, eq=False)
class Within:
    """The advice for one format. `rows` has the default, the best single change and the best combination of changes."""

    format: str
    rows: tuple[Row, ...]
    advised: Row
    measured: int
    """Number of variants that were measured."""

    @property
    def keeps_default(self) -> bool:
        """Whether no change is advised."""
        return self.advised.title == DEFAULT


def within(format_name: str, changes: Sequence[Change], found: Recommendation) -> Within | None:
    """Return the advice on the settings of one format, given a ranking (`found`) of the variants of `changes`. Return
    None if the default has no figures."""
    by_variant = {change.variant: change for change in changes}
    candidates = {each.candidate.variant: each.candidate for each in found.ranked}
    default = candidates.get(changes[0].variant)
    if default is None:
        return None
    tied = {each.candidate.variant for each in found.tied}
    compared = [
        Row(_title(by_variant[each.candidate.variant]), by_variant[each.candidate.variant], each)
        for each in against([*candidates.values()], default, found.preferences)
        if each.candidate.variant in by_variant
    ]
    first = {row.title: row for row in reversed(compared)}
    rows = tuple(first[title] for title in (DEFAULT, SINGLE, COMBINED) if title in first)
    better = [row for row in compared if row.change.variant in tied and _is_worth(row.ranked)]
    advised = min(better, key=lambda row: (row.change.parts, row.ranked.score), default=first[DEFAULT])
    if advised not in rows:
        rows = tuple(advised if row.title == advised.title else row for row in rows)
    return Within(format_name, rows, advised, len(compared))


def _title(change: Change) -> str:
    return COMBINED if change.parts > 1 else SINGLE if change.parts else DEFAULT


def _is_worth(each: Ranked) -> bool:
    """Return whether a variant is better than the default beyond chance, and by at least LEAST_GAIN."""
    ratio = each.against_first
    clearly = ratio is not None and ratio.high is not None and ratio.high < 1
    return clearly and each.score <= 1 - LEAST_GAIN
