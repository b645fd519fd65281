"""Lay out the tables of a recommendation, and the short names that the whole answer uses.

Labels may be wrapped; figures are never wrapped.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table as Grid

from bench_runner.variants import Variant
from reports.analysis.labels import short_labels
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.baseline import Baseline
from reports.analysis.recommendation.candidates import Candidate
from reports.analysis.recommendation.daily_time import read_whole
from reports.analysis.recommendation.preferences import STAGES, USE, Preferences
from reports.analysis.recommendation.recommend import Ranked, Recommendation
from reports.analysis.units import number_text
from reports.analysis.words import stage_text
from reports.text.page import folded, label_width_of, new_grid
from reports.text.recommendation_uses import own_cells, own_heads

MOST_ROWS, FEWEST_ROWS = 6, 5
"""Largest and smallest number of variants on the first screen. There are fewer if there is more text. The user's
current variant is an additional row."""
MOST_BESIDE = 2
"""Largest number of variants on the first screen whose maturity the user does not accept. They are shown but not
recommended."""
_HEADS = {
    **{"read": "read\nms", "save": "save\nms", "size": "size\nMB", "time": "time\nms"},
    **{"read_memory": "read\npeak MB", "save_memory": "save\npeak MB"},
    USE: "a day\ns",
}
_HEAD_WIDTH = 13
"""Width in characters to which the headers of other operations are wrapped."""
_FIT_BESIDE = 3
"""With at most this number of figures, headers have the unit next to the name, otherwise below it."""


def short_names(found: Recommendation) -> dict[Variant, str]:
    """Return a short name for each variant of the answer. All parts of the answer use these names."""
    return short_labels(each.candidate.variant for each in (*found.ranked, *found.not_accepted))


def baseline_name(answer: Answer, now: Baseline) -> str:
    """Return the name of the user's current variant: 'your CSV' or 'plain CSV'. If the variant was measured only on few
    rows, the number of rows is added."""
    title = now.candidate.title or now.candidate.variant
    rows = "" if now.rows is None else f" (at {now.rows:,} rows)"
    return f"{'your' if answer.yours else 'plain'} {title}{rows}"


def best_shown(found: Recommendation, rows: int = MOST_ROWS) -> list[Ranked]:
    """Return the variants for the first screen: the best recommended variants, then the best variant of each maturity
    that the user does not accept."""
    best_of_stage: dict[str, Ranked] = {}
    for each in found.not_accepted:
        best_of_stage.setdefault(each.candidate.stage, each)
    beside = list(best_of_stage.values())[:MOST_BESIDE]
    return [*found.ranked[: rows - len(beside)], *beside]


def grid_of(answer: Answer, shown: Sequence[Ranked]) -> Grid:
    """Return a grid with a row for each variant in `shown`. If the user's current variant is not in `shown`, an
    additional row has its figures."""
    now = answer.found.baseline if answer.found.baseline is not None and answer.found.baseline.values else None
    names = [name for name in shown[0].values if name != USE]
    between = " " if len(names) <= _FIT_BESIDE and not answer.found.preferences.weighed_parts else "\n"
    sure = any(each.probability is not None for each in shown)
    figures = [_head(name, answer.found.preferences).replace("\n", between) for name in names]
    headers = ["score", *own_heads(names, answer.found.preferences), *figures, *(["P(best)"] if sure else []), "rounds"]
    lines = [(each.candidate.variant, _cells(each, sure, answer.found.preferences)) for each in shown]
    if now is not None and now.candidate.variant not in dict(lines):
        score = "" if now.score is None else number_text(now.score)
        own = own_cells(now.candidate, now.values, answer.found.preferences)
        cells = [score, *own, *([""] if sure else []), str(len(now.candidate.rounds))]
        lines.append((now.candidate.variant, cells))
    return _labelled(answer, headers, lines)


def _head(name: str, preferences: Preferences) -> str:
    if name in _HEADS:
        return _HEADS[name]
    return "\n".join((*textwrap.wrap(preferences.title(name), _HEAD_WIDTH), "ms"))


def _cells(each: Ranked, sure: bool, preferences: Preferences) -> list[str]:
    probability = "" if each.probability is None else f"{each.probability:.2f}"
    own = own_cells(each.candidate, each.values, preferences)
    return [_marked(each), *own, *([probability] if sure else []), str(len(each.candidate.rounds))]


def _marked(each: Ranked) -> str:
    """Return the score as printed. As in every table, '=' before a score means a tie: the variant may be as good as the
    first one."""
    tied = each.against_first is not None and each.against_first.tied and each.score != 1
    return f"{'=' if tied else ''}{number_text(each.score)}"


def grid_of_multiples(answer: Answer, shown: Sequence[Ranked]) -> Grid:
    """Return a grid in which each figure is a multiple of the best figure of its column. A score is a multiple of the
    first variant's score, and its interval follows."""
    heads = (_head(name, answer.found.preferences).removesuffix(" MB") for name in shown[0].ratios)
    headers = ["score (95 %)", *(f"x {head}" for head in heads), "Pareto"]
    lines = [
        (
            each.candidate.variant,
            [_with_interval(each), *map(number_text, each.ratios.values()), "yes" if each.on_frontier else ""],
        )
        for each in shown
    ]
    return _labelled(answer, [re.sub(r"\n(ms|MB|s)$", "", header) for header in headers], lines)


def _with_interval(each: Ranked) -> str:
    ratio = each.against_first
    if ratio is None or ratio.low is None or ratio.high is None or each.score == 1:
        return number_text(each.score)
    return f"{number_text(each.score)} ({number_text(ratio.low)}-{number_text(ratio.high)})"


def _labelled(answer: Answer, headers: Sequence[str], lines: Sequence[tuple[Variant, Sequence[str]]]) -> Grid:
    """Return a grid with a row for each variant: its short name, its mark, and its values."""
    found = answer.found
    width = label_width_of(headers, [cells for _, cells in lines], padding=2)
    names, marks = short_names(found), _marks(answer)
    grid = new_grid()
    grid.add_column("variant", no_wrap=True)
    for header in headers:
        grid.add_column(header, justify="right", no_wrap=True)
    for variant, cells in lines:
        ranked = variant in names
        label = names[variant] if ranked or found.baseline is None else baseline_name(answer, found.baseline)
        grid.add_row(escape(_label(label, marks.get(variant, ""), width)), *cells)
    return grid


def _marks(answer: Answer) -> dict[Variant, str]:
    """Return a mark for each variant, '' if there is nothing to mark. A mark has the maturity if it is not established,
    'yours now' for the user's format, and operations for which the library has no call."""
    found = answer.found
    now = found.baseline.candidate.variant if found.baseline is not None and answer.yours else None
    marks = {}
    for candidate in (each.candidate for each in (*found.ranked, *found.not_accepted)):
        told = [] if candidate.stage == STAGES[0] else [stage_of(candidate)]
        told += ["yours now"] if candidate.variant == now else []
        whole = read_whole(candidate, found.preferences)
        told += [f"no call to {whole[0]}{and_more(whole)}"] if whole else []
        marks[candidate.variant] = f"({', '.join(told)})" if told else ""
    return marks


def _label(name: str, mark: str, width: int) -> str:
    """Return name and mark, on one line if there is enough width, else on several."""
    whole = f"{name} {mark}".rstrip()
    if len(whole) <= width:
        return whole
    return "\n ".join((folded(name, width), *textwrap.wrap(mark, max(width - 1, 20))))


def stage_of(candidate: Candidate) -> str:
    """Return the maturity of a candidate in words. A format that declares no maturity counts as 'young'."""
    return stage_text(candidate.maturity) if candidate.maturity is not None else candidate.stage


def and_more(lines: Sequence[str]) -> str:
    """Return ' (and 2 more)' for three lines, '' for one. The caller prints the first line and appends this text."""
    return f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
