"""Rank the variants that were measured for a recommendation, and state why the screening (the first measurement, on few
rows) left some variants out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bench_runner.conditions import Conditions
from bench_runner.data_kinds import kind_of_target
from bench_runner.errors import RunError
from bench_runner.plan.candidates import is_chosen
from bench_runner.variants import Variant, variant_of
from format_bench.api.own_format import PLAIN, PLAIN_CSV
from format_bench.errors import RequestError
from reports.analysis.recommendation.candidates import (
    NOT_COUNTED,
    Candidate,
    Question,
    RunSummary,
    for_preferences,
    is_cold,
    project_candidates,
    whole_rows,
)
from reports.analysis.recommendation.eligibility import eligible
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.race import not_raced
from reports.analysis.recommendation.recommend import Recommendation, compared, recommend


@dataclass(frozen=True, eq=False)
class Choice:
    """What a recommendation chooses from, and on which data.

    `question` is a data set under the conditions of a run. `candidates` are the variants that were measured on it.
    `screening` is the Choice of the earlier measurement on few rows; None if there was none.
    """

    summary: RunSummary
    question: Question
    candidates: Sequence[Candidate]
    screening: Choice | None = None

    @property
    def own(self) -> Variant | None:
        """The user's current variant; None if unknown.

        If measuring this variant on many rows would take too long, the run does not name it. The name then comes from
        the screening (the earlier measurement on few rows).
        """
        named = self.summary.run.info.request.baseline
        if named is not None:
            return variant_of(named)
        return self.screening.own if self.screening is not None else None

    @property
    def baseline(self) -> Variant:
        """The variant that the others are compared with: the user's current variant, or else a plain library call."""
        return self.own or PLAIN[kind_of_target(self.question.conditions.target).name]

    @property
    def held_bytes(self) -> int:
        """Memory that the data take, for as many rows as the figures of the candidates."""
        about = self.summary.run.info.datasets.get(self.question.dataset)
        if about is None:
            return 0
        rows = next((each.projected_rows for each in self.candidates if each.projected_rows is not None), None)
        return about.size_bytes if rows is None else round(about.size_bytes * rows / self.question.rows)

    @property
    def chosen(self) -> list[Candidate]:
        """The candidates that the user's patterns for formats select.

        The baseline is always measured, but this list has the baseline only if the patterns select it.
        """
        request = self.summary.run.info.request
        return [
            candidate
            for candidate in self.candidates
            if candidate.variant not in (request.baseline, PLAIN_CSV)
            or is_chosen(candidate.variant, request.formats, request.formats_not)
        ]


def check_bandwidth(preferences: Preferences, conditions: Conditions) -> None:
    """Raise RequestError for a bandwidth with cold reads, which would count the transfer twice."""
    if preferences.bandwidth_bytes_per_s is not None and is_cold(conditions):
        raise RequestError(
            "`bandwidth_bytes_per_s` cannot be combined with cold reads, whose times already include the device.",
            "Omit `bandwidth_bytes_per_s`, or measure warm reads by `cache='warm'`.",
            parameter="bandwidth_bytes_per_s",
            given=preferences.bandwidth_bytes_per_s,
        )


def only_choice(summary: RunSummary, screening: Choice | None = None) -> Choice:
    """Return the variants of a run, with their figures, if the run was made for one recommendation.

    If the run measured two samples of a table, of different sizes, the figures of the variants are projected to the
    whole table. `screening` (the choice among the variants of the preceding rough measurement) is only passed on in the
    result. Raises RunError if nothing was measured.
    """
    found = sorted(summary.questions.items(), key=lambda each: -each[0].rows)
    if not found:
        raise RunError(
            f"Nothing was measured in {summary.run.folder}, so nothing can be recommended.",
            "See the reasons in samples.jsonl of this folder.",
        )
    (question, candidates), (smaller, fewer) = found[0], found[-1]
    rows = whole_rows(summary.run, question.dataset)
    if rows is not None and len(found) > 1:
        candidates = project_candidates(candidates, fewer, (smaller.rows, question.rows, rows))
    return Choice(summary, question, candidates, screening)


def uncounted(candidates: Iterable[Candidate], preferences: Preferences) -> Iterator[Variant]:
    """Yield the variants that must be measured again: nothing failed, but a figure with a weight in the preferences is
    missing.

    The figure is missing because the rounds of the variant do not count, for example because the machine was busy.
    """
    for candidate in for_preferences(candidates, preferences):
        if candidate.unknown or any(candidate.lacks(name) == NOT_COUNTED for name in preferences.operations):
            yield candidate.variant


def rank(
    choice: Choice, preferences: Preferences, left_out: Iterable[tuple[Variant, str]] = (), *, on_all_rows: bool = True
) -> Recommendation:
    """Return the ranking of the candidates that satisfy the needs (the abilities that the user requires).

    `left_out` are variants that are not ranked, each with the reason. Use `on_all_rows=False` for a screening: fixed
    costs dominate on few rows, so measured times do not show whether a need is met. Raises RequestError for a bandwidth
    with cold reads.
    """
    check_bandwidth(preferences, choice.question.conditions)
    chosen, every = (for_preferences(each, preferences) for each in (choice.chosen, choice.candidates))
    kept, dropped = eligible(chosen, preferences, choice.held_bytes, on_all_rows=on_all_rows)
    now = next((candidate for candidate in every if candidate.variant == choice.baseline), None)
    return recommend(kept, [*dropped, *left_out], preferences, now)


def rank_after_screening(choice: Choice, preferences: Preferences) -> Recommendation:
    """Return the ranking of the candidates. The ranking's `dropped` includes the variants that the screening left out.

    The screening is the earlier measurement on few rows. If only the screening measured the baseline (the user's
    current variant), the baseline and the best variant are compared on these few rows.
    """
    if choice.screening is None:
        return rank(choice, preferences)
    screened = rank(choice.screening, preferences, on_all_rows=False)
    found = rank(choice, preferences, _left_out(choice, screened, choice.screening.question.rows))
    if found.baseline is not None or not found.ranked:
        return found
    by_variant = {candidate.variant: candidate for candidate in choice.screening.candidates}
    now, first = by_variant.get(choice.baseline), by_variant.get(found.ranked[0].candidate.variant)
    if now is None or first is None or not first.rounds:
        return found
    on_few_rows = compared(now, first, preferences)
    return replace(found, baseline=replace(on_few_rows, values={}, score=None, rows=choice.screening.question.rows))


def _left_out(choice: Choice, screened: Recommendation, rows: int) -> Iterator[tuple[Variant, str]]:
    measured = {candidate.variant for candidate in choice.chosen}
    yield from ((variant, reason) for variant, reason in screened.dropped if variant not in measured)
    yield from not_raced(screened, measured, rows)
