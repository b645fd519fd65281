"""Write a recommendation as JSON: preferences, all figures, what was left out, and the lines of Python.

The JSON contains everything that reports.text.recommendation prints, in full.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from msgspec import structs

from bench_runner.results.statistics import Interval, Ratio, median_interval
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.baseline import Baseline
from reports.analysis.recommendation.candidates import Candidate, Question
from reports.analysis.recommendation.daily_time import read_whole, use_a_day
from reports.analysis.recommendation.needs import Met, judged
from reports.analysis.recommendation.preferences import Preferences, Use
from reports.analysis.recommendation.reasons import Reason, reasons
from reports.analysis.recommendation.recommend import BreakEven, Ranked, weights
from reports.analysis.recommendation.within import Within


def as_json(answer: Answer) -> str:
    """Return the whole answer as JSON."""
    found = answer.found
    shape = {
        "dataset": answer.question.dataset,
        "about": answer.about,
        "rows": answer.question.rows,
        "machine": answer.question.machine,
        "conditions": _conditions_shape(answer.question),
        "preferences": {**asdict(found.preferences), "shares": weights(found.preferences)},
        "recommended": found.ranked[0].candidate.variant if found.ranked else None,
        "tied": [each.candidate.variant for each in found.tied],
        "ranked": [_ranked_shape(each, found.preferences) for each in found.ranked],
        "not_accepted": [_ranked_shape(each, found.preferences) for each in found.not_accepted],
        "baseline": None if found.baseline is None else _baseline_shape(found.baseline, answer.yours),
        "left_out": [{"variant": variant, "reason": reason} for variant, reason in found.dropped],
        "break_evens": [_break_even_shape(change) for change in found.break_evens],
        "reasons": [_reason_shape(each) for each in reasons(found)],
        "cautions": list(answer.cautions),
        "remarks": list(answer.remarks),
        "remote": list(answer.remote),
        "within": None if answer.within is None else _within_shape(answer.within),
        "folder": answer.folder,
        "python": {
            **{"imports": list(answer.imports), "save": answer.save, "read": answer.read},
            "uses": dict(answer.parts),
        },
    }
    return json.dumps(shape, indent=1, ensure_ascii=False)


def _within_shape(advice: Within) -> dict[str, Any]:
    """Return the advice on the settings of one format. Scores and ratios are relative to those of the default
    settings."""
    rows = [
        {
            "title": row.title,
            "variant": row.change.variant,
            "change": row.change.text,
            "arguments": dict(row.change.arguments),
            "sorted_by": row.change.sorted_by,
            "score": row.ranked.score,
            "against_default": _ratio_shape(row.ranked.against_first),
            "ratios": dict(row.ranked.ratios),
        }
        for row in advice.rows
    ]
    return {"format": advice.format, "advised": advice.advised.change.variant, "rows": rows}


def _conditions_shape(question: Question) -> dict[str, str]:
    """Return the conditions without the track (the rule by which codecs were chosen), because all tracks are ranked
    together."""
    return {name: value for name, value in structs.asdict(question.conditions).items() if name != "track"}


def _ranked_shape(each: Ranked, preferences: Preferences) -> dict[str, Any]:
    return {
        **_candidate_shape(each.candidate),
        "needs": [_need_shape(judged(each.candidate, need)) for need in preferences.needs],
        "uses": [_use_shape(each.candidate, use) for use in preferences.uses],
        "reads_whole_for": read_whole(each.candidate, preferences),
        "score": each.score,
        "against_first": _ratio_shape(each.against_first),
        "probability": each.probability,
        "on_frontier": each.on_frontier,
        "values": dict(each.values),
        "ratios": dict(each.ratios),
    }


def _need_shape(met: Met) -> dict[str, Any]:
    return {"need": met.need, "operation": met.operation or None, "of_all": _ratio_shape(met.ratio)}


def _use_shape(candidate: Candidate, use: Use) -> dict[str, Any]:
    interval = median_interval(list(use_a_day(candidate.figures, use).values()))
    return {**asdict(use), "ns_a_day": _interval_shape(interval), "by": candidate.stands_in(use.operation) or None}


def _baseline_shape(now: Baseline, yours: bool) -> dict[str, Any]:
    return {
        **_candidate_shape(now.candidate),
        "yours": yours,
        "compared_rows": now.rows,
        "score": now.score,
        "values": dict(now.values),
        "times_the_recommended": {name: _ratio_shape(ratio) for name, ratio in now.ratios.items()},
        "reason": now.candidate.reason,
    }


def _candidate_shape(candidate: Candidate) -> dict[str, Any]:
    return {
        "variant": candidate.variant,
        "maturity": None if candidate.maturity is None else structs.asdict(candidate.maturity),
        "rounds": len(candidate.rounds),
        "by_round": {name: {str(k): v for k, v in values.items()} for name, values in candidate.figures.items()},
        "losses": list(candidate.losses),
    }


def _ratio_shape(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None else asdict(ratio)


def _break_even_shape(change: BreakEven) -> dict[str, Any]:
    return {
        "of": change.of,
        "below": change.first,
        "above": change.then,
        "at": _interval_shape(change.at),
        "since": change.since,
        "until": change.until,
    }


def _interval_shape(interval: Interval) -> dict[str, Any]:
    # JSON cannot represent infinity.
    return {name: None if value in (float("inf"), None) else value for name, value in asdict(interval).items()}


def _reason_shape(reason: Reason) -> dict[str, Any]:
    return {"variant": reason.variant, "wins": list(reason.wins), "sentence": reason.sentence}
