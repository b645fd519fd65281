"""State why a variant is best. Each variant that is best in a criterion gets one sentence with figures from its stored
samples.

The thesis describes the 'key advantage' of each format in words. This module gives figures instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench_runner.results.information import READ, SAVE
from bench_runner.results.statistics import CellSummary
from bench_runner.variants import Variant
from reports.analysis.recommendation.candidates import Candidate
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.recommend import Ranked, Recommendation, weights
from reports.analysis.units import number_text

_PARTS = (("engine_ns", "the library's call"), ("convert_ns", "conversion"), ("touch_ns", "touching the pages"))
_MOST_ENCODINGS = 4


@dataclass(frozen=True)
class Reason:
    """One variant with the criteria in which it is best, and a sentence with its figures."""

    variant: Variant
    wins: tuple[str, ...]
    """Titles of the weighted criteria in which the variant is best. 'the weighted whole' means that the variant has the
    best score."""
    sentence: str


def reasons(found: Recommendation) -> list[Reason]:
    """Return a reason for the first variant, and for each other variant that is best in a criterion with a weight."""
    if not found.ranked:
        return []
    wins: dict[Variant, list[str]] = {found.ranked[0].candidate.variant: ["the weighted whole"]}
    for name in weights(found.preferences):
        best = min(found.ranked, key=lambda each: each.values[name])
        wins.setdefault(best.candidate.variant, []).append(found.preferences.title(name))
    by_variant = {each.candidate.variant: each for each in found.ranked}
    return [
        Reason(variant, tuple(titles), _sentence(by_variant[variant], found.preferences))
        for variant, titles in wins.items()
    ]


def _sentence(ranked: Ranked, preferences: Preferences) -> str:
    candidate = ranked.candidate
    told: dict[str, str] = {READ: "reads in", SAVE: "saves in"}
    parts_asked = {name: f"{preferences.title(name)}:" for name in preferences.operations if name not in told}
    parts = [
        # The answer's table shows the same value. It is corrected if the variants were measured in other rounds.
        _time(candidate.cells[operation], verb, ranked.values.get(operation))
        for operation, verb in {**parts_asked, **told}.items()
        if operation in candidate.cells and "wall_ns" in candidate.cells[operation].figures
    ]
    return "; ".join([*parts, *_file(candidate)])


def _time(cell: CellSummary, verb: str, ranked_ns: float | None) -> str:
    wall = cell.figures["wall_ns"].median
    told = f"{verb} {number_text((ranked_ns or wall) / 1e6)} ms"
    if cell.raw_io_multiple is not None:
        told += f", {number_text(cell.raw_io_multiple.ratio)} times raw I/O"
    shares = [
        f"{title} {cell.figures[name].median / wall:.0%}"
        for name, title in _PARTS
        if name in cell.figures and cell.figures[name].median >= 0.01 * wall
    ]
    if cell.cores_used is not None:
        shares.append(f"{cell.cores_used:.1f} cores")
    fetched = cell.figures.get("device_read_bytes")
    if fetched is not None and fetched.median > 0:
        shares.append(f"{number_text(fetched.median / 1e6)} MB from the device")
    return f"{told} ({', '.join(shares)})" if shares else told


def _file(candidate: Candidate) -> Iterator[str]:
    save = candidate.cells.get(SAVE)
    size = save.figures.get("size_bytes") if save else None
    codec = save.codec if save else None
    told = [] if size is None else [f"{number_text(size.median / 1e6)} MB"]
    if codec not in (None, "none"):
        told.append(f"codec {codec}")
    if candidate.encodings:
        more = len(candidate.encodings) - _MOST_ENCODINGS
        told.append(
            "encodings " + ", ".join(candidate.encodings[:_MOST_ENCODINGS]) + (f" and {more} more" if more > 0 else "")
        )
    if told:
        yield "its file: " + ", ".join(told)
