"""State why a variant is best. Each variant that is best in a criterion gets one sentence with its figures. All figures
of a sentence are either of the stored samples, or projected to the whole table.

The thesis describes the 'key advantage' of each format in words. This module gives figures instead.
"""

from __future__ import annotations

import statistics
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
        _time(candidate, operation, verb, preferences)
        for operation, verb in {**parts_asked, **told}.items()
        if operation in candidate.cells and candidate.figures.get(operation)
    ]
    sentence = "; ".join([*parts, *_file(candidate)])
    rows = candidate.projected_rows
    return sentence if rows is None else f"projected to {rows:,} rows: {sentence}"


def _time(candidate: Candidate, operation: str, verb: str, preferences: Preferences) -> str:
    # The time without the transfer, because only this time belongs to the multiple of raw I/O and to the cores.
    told = f"{verb} {number_text(statistics.median(candidate.figures[operation].values()) / 1e6)} ms"
    if preferences.bandwidth_bytes_per_s is not None:
        told += " without the transfer"
    if candidate.projected_rows is not None:
        # Multiples, shares and cores are known of the sample only.
        return told
    cell = candidate.cells[operation]
    if cell.raw_io_multiple is not None:
        told += f", {number_text(cell.raw_io_multiple.ratio)} times raw I/O"
    shares = [*_shares(cell)]
    return f"{told} ({', '.join(shares)})" if shares else told


def _shares(cell: CellSummary) -> Iterator[str]:
    for name, title in _PARTS:
        if name in cell.figures:
            share = cell.figures[name].median / cell.figures["wall_ns"].median
            if share >= 0.01:
                yield f"{title} {share:.0%}"
    if cell.cores_used is not None:
        yield f"{cell.cores_used:.1f} cores"
    fetched = cell.figures.get("device_read_bytes")
    if fetched is not None and fetched.median > 0:
        yield f"{number_text(fetched.median / 1e6)} MB from the device"


def _file(candidate: Candidate) -> Iterator[str]:
    save, sizes = candidate.cells.get(SAVE), candidate.figures["size"]
    codec = save.codec if save else None
    told = [f"{number_text(statistics.median(sizes.values()) / 1e6)} MB"] if sizes else []
    if codec not in (None, "none"):
        told.append(f"codec {codec}")
    if candidate.encodings:
        more = len(candidate.encodings) - _MOST_ENCODINGS
        told.append(
            "encodings " + ", ".join(candidate.encodings[:_MOST_ENCODINGS]) + (f" and {more} more" if more > 0 else "")
        )
    if told:
        yield "its file: " + ", ".join(told)
