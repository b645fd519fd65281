"""Select the candidates that have everything the user requires, before anything is ranked. Give the reason why each
other candidate is left out."""

from __future__ import annotations

from collections.abc import Iterable

from bench_runner.variants import Variant
from reports.analysis.recommendation.candidates import CHANGES, NO_FIGURE, Candidate
from reports.analysis.recommendation.needs import judged
from reports.analysis.recommendation.preferences import Preferences


def eligible(
    candidates: Iterable[Candidate], preferences: Preferences, held_bytes: int, *, on_all_rows: bool = True
) -> tuple[list[Candidate], list[tuple[Variant, str]]]:
    """Return two lists: the candidates that have everything the user requires, in the order of `candidates`, and each
    other candidate with the reason why it drops out.

    `held_bytes` is the memory that the data take, which a save needs in addition to its peak. Set `on_all_rows=False`
    if variants were measured on a sample. Times are then not used to judge what a variant can do, because fixed costs
    dominate on few rows. A variant that changes the data drops out if there is an exact variant, that is one that
    changes nothing. A variant with an accepted maturity drops out for this reason only if an exact variant also has an
    accepted maturity.
    """
    kept: list[Candidate] = []
    dropped: list[tuple[Variant, str]] = []
    for candidate in candidates:
        reason = candidate.reason or _unfit(candidate, preferences, held_bytes, on_all_rows)
        if reason:
            dropped.append((candidate.variant, reason))
        else:
            kept.append(candidate)
    exact = [candidate for candidate in kept if not candidate.losses]
    exact_and_accepted = any(preferences.accepts(candidate.stage) for candidate in exact)
    for candidate in [candidate for candidate in kept if candidate.losses]:
        if exact_and_accepted or (exact and not preferences.accepts(candidate.stage)):
            dropped.append((candidate.variant, f"{CHANGES}: {candidate.losses[0]}"))
            kept.remove(candidate)
    return kept, dropped


def _unfit(candidate: Candidate, preferences: Preferences, held_bytes: int, on_all_rows: bool) -> str:
    if candidate.variant.is_apart:
        return "another kind of result: a memory mapping, views, or numbers instead of missing values"
    for operation in preferences.operations:
        if lacking := candidate.lacks(operation):
            return f"{NO_FIGURE} {preferences.title(operation)}: {lacking}"
    for need in preferences.needs:
        if reason := judged(candidate, need, measured=on_all_rows).reason:
            return reason
    limit_bytes = preferences.max_memory_bytes
    if limit_bytes is not None:
        # The peak of a read includes its result; the peak of a save does not include its input.
        saving = max(candidate.figures["save_memory"].values()) + held_bytes
        needed = max(saving, *candidate.figures["read_memory"].values())
        if needed > limit_bytes:
            return f"memory: needs {needed / 1e9:.2f} GB, at most {limit_bytes / 1e9:.2f} are allowed"
    return ""
