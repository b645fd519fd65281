"""A recommendation for people and programs: on the terminal, and as JSON.

It shows what reports.analysis.recommendation.recommend found, with the lines of Python that it is handed, and judges
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from msgspec import structs
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from bench_runner.results.statistics import Interval, Ratio
from reports.analysis.labels import conditions_text, short_labels
from reports.analysis.recommendation.candidates import NOT_COUNTED, Question
from reports.analysis.recommendation.reasons import TITLES, Reason, reasons
from reports.analysis.recommendation.recommend import BreakEven, Ranked, Recommendation, weights
from reports.analysis.units import number_text
from reports.text.page import folded, label_width_of, page_for, print_lines

_NARROW = 4.0
"""A break-even is told where its interval's ends differ by at most this factor: otherwise nobody knows where it is."""


@dataclass(frozen=True)
class Answer:
    """A recommendation with what it is about: the data, remarks on how it was measured, and the lines of Python of the
    first (empty where there is none)."""

    question: Question
    found: Recommendation
    remarks: tuple[str, ...]
    imports: tuple[str, ...]
    save: str
    read: str


def show(answer: Answer, console: Console) -> None:
    """Print the answer first, then where it comes from, and last the lines to paste. Always 100 columns wide."""
    page, found = page_for(console), answer.found
    print_lines(page, [_title(answer)])
    page.print()
    if not found.ranked:
        busy = all(reason == NOT_COUNTED for _, reason in found.dropped)
        said = "no sample counts: the machine was not at rest; try again when it is ('doctor' looks at it)"
        print_lines(page, [said if busy else "nothing that was measured satisfies the needs:"], style="bold")
        print_lines(page, [f"  {variant}: {reason}" for variant, reason in found.dropped])
        return
    print_lines(page, [f"recommended: {found.ranked[0].candidate.variant}"], style="bold green")
    print_lines(page, [f"  {text}" for text in _certainty(found)])
    page.print()
    page.print(_grid(found))
    if len({each.candidate.rounds for each in found.ranked}) > 1:
        print_lines(page, ["rounds differ: what a whole round was slower or faster is taken out of the times"])
    why = [f"{each.variant} (best in {', '.join(each.wins)}) {each.sentence}" for each in reasons(found)]
    _section(page, "why", why)
    _section(page, "where the answer changes (in time alone)", _break_evens(found))
    _section(page, "left out", [f"{variant}: {reason}" for variant, reason in found.dropped])
    _section(page, "remarks", list(answer.remarks))
    page.print()
    print_lines(page, ["to save and to read:"], style="bold")
    # Lines to paste must not be broken by the width of a page.
    for line in (*answer.imports, answer.save, answer.read):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _section(page: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        page.print()
        print_lines(page, [title], style="bold")
        print_lines(page, [f"  {line}" for line in lines])


def _title(answer: Answer) -> str:
    question = answer.question
    amount = f"{question.rows:,} {'images' if question.conditions.target == 'images' else 'rows'}"
    where = conditions_text(question.conditions).removeprefix("track , ")
    return f"{question.dataset}, {amount}, on {question.machine}, {where}"


def _certainty(found: Recommendation) -> list[str]:
    first = found.ranked[0]
    preferences = found.preferences
    told = ", ".join(f"{TITLES[name]} {share:.0%}" for name, share in weights(preferences).items())
    lines = [f"weights: {told}"]
    if preferences.reads_per_save is not None:
        lines.append(f"time: one save and {preferences.reads_per_save:g} reads")
    if preferences.bandwidth_bytes_per_s is not None:
        lines.append(f"times include the transfer at {preferences.bandwidth_bytes_per_s / 1e6:g} MB/s")
    if preferences.needs:
        lines.append(f"needs: {', '.join(preferences.needs)}")
    if first.probability is None:
        lines.append("how sure: too few rounds to say; more time (--budget) gives more")
    else:
        lines.append(f"how sure: the best with probability {first.probability:.2f} (bootstrap over rounds)")
    tied = [each.candidate.variant for each in found.tied[1:]]
    if tied:
        lines.append(f"cannot be told from: {', '.join(tied)}")
    return lines


def _grid(found: Recommendation) -> Grid:
    labels = short_labels(each.candidate.variant for each in found.ranked)
    names = list(found.ranked[0].values)
    headers = ("score", *(f"{TITLES[name]}, {_unit(name)}" for name in names), "P(best)", "Pareto", "rounds")
    cells = [
        (
            _score_text(each),
            *(f"{_people(name, each.values[name])} ({number_text(each.ratios[name])}x)" for name in names),
            "" if each.probability is None else f"{each.probability:.2f}",
            "yes" if each.on_frontier else "",
            str(len(each.candidate.rounds)),
        )
        for each in found.ranked
    ]
    width = label_width_of(headers, cells, padding=2)
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("variant", no_wrap=True)
    for header in headers:
        grid.add_column(header, justify="right")
    for each, values in zip(found.ranked, cells, strict=True):
        grid.add_row(escape(folded(labels[each.candidate.variant], width)), *values)
    return grid


def _score_text(each: Ranked) -> str:
    ratio = each.against_first
    if ratio is None or ratio.low is None or ratio.high is None or each.score == 1:
        return number_text(each.score)
    return f"{number_text(each.score)} ({number_text(ratio.low)}-{number_text(ratio.high)})"


def _unit(name: str) -> str:
    return "MB" if name in ("size", "read_memory", "save_memory") else "ms"


def _people(name: str, value: float) -> str:
    return number_text(value / 1e6)


def _break_evens(found: Recommendation) -> list[str]:
    lines = []
    for change in found.break_evens:
        at = change.at
        if at.low is None or at.high is None or at.high > _NARROW * at.low:
            continue
        if change.of == "reads":
            where = f"{number_text(at.median)} ({number_text(at.low)} to {number_text(at.high)})"
            lines.append(f"{change.then} wins if you read more than {where} times for each save, else {change.first}")
        else:
            megabytes = [number_text(value / 1e6) for value in (at.median, at.low, at.high)]
            where = f"{megabytes[0]} MB/s ({megabytes[1]} to {megabytes[2]})"
            lines.append(f"below {where} of storage {change.first} wins, above {change.then}")
    return lines


def as_json(answer: Answer) -> str:
    """Everything, for programs: weights, needs, every figure, what was left out, and the lines."""
    found = answer.found
    shape = {
        "dataset": answer.question.dataset,
        "rows": answer.question.rows,
        "machine": answer.question.machine,
        "conditions": _conditions_shape(answer.question),
        "preferences": {**asdict(found.preferences), "shares": weights(found.preferences)},
        "recommended": found.ranked[0].candidate.variant if found.ranked else None,
        "tied": [each.candidate.variant for each in found.tied],
        "ranked": [_ranked_shape(each) for each in found.ranked],
        "left_out": [{"variant": variant, "reason": reason} for variant, reason in found.dropped],
        "break_evens": [_break_even_shape(change) for change in found.break_evens],
        "reasons": [_reason_shape(each) for each in reasons(found)],
        "remarks": list(answer.remarks),
        "python": {"imports": list(answer.imports), "save": answer.save, "read": answer.read},
    }
    return json.dumps(shape, indent=1, ensure_ascii=False)


def _conditions_shape(question: Question) -> dict[str, str]:
    """Without the track: all stand together."""
    return {name: value for name, value in structs.asdict(question.conditions).items() if name != "track"}


def _ranked_shape(each: Ranked) -> dict[str, Any]:
    return {
        "variant": each.candidate.variant,
        "score": each.score,
        "against_first": _ratio_shape(each.against_first),
        "probability": each.probability,
        "on_frontier": each.on_frontier,
        "rounds": len(each.candidate.rounds),
        "values": dict(each.values),
        "ratios": dict(each.ratios),
        "by_round": {name: {str(k): v for k, v in values.items()} for name, values in each.candidate.figures.items()},
        "losses": list(each.candidate.losses),
    }


def _ratio_shape(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None else asdict(ratio)


def _break_even_shape(change: BreakEven) -> dict[str, Any]:
    return {"of": change.of, "below": change.first, "above": change.then, "at": _interval_shape(change.at)}


def _interval_shape(interval: Interval) -> dict[str, Any]:
    # JSON has no infinity.
    return {name: None if value in (float("inf"), None) else value for name, value in asdict(interval).items()}


def _reason_shape(reason: Reason) -> dict[str, Any]:
    return {"variant": reason.variant, "wins": list(reason.wins), "sentence": reason.sentence}
