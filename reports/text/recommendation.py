"""A recommendation for people, on the terminal: the answer on one screen, and below it, shortened, where it comes from.

It shows what reports.analysis.recommendation.recommend found, with the lines of Python that it is handed, and judges
nothing. The same for programs is reports.text.recommendation_json's.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from bench_runner.results.statistics import Ratio, format_name
from reports.analysis.labels import conditions_text, short_labels
from reports.analysis.recommendation.baseline import Baseline
from reports.analysis.recommendation.candidates import CANNOT, NO_FIGURE, NOT_COUNTED, Candidate, Question
from reports.analysis.recommendation.needs import judged
from reports.analysis.recommendation.preferences import STAGES, USE, Preferences
from reports.analysis.recommendation.reasons import reasons
from reports.analysis.recommendation.recommend import MOST_OF_TIED, Ranked, Recommendation, weights
from reports.analysis.recommendation.using import read_whole
from reports.analysis.tables import COUNTED
from reports.analysis.units import number_text
from reports.analysis.words import WHOSE_CHOICES, stage_text
from reports.text.page import folded, label_width_of, lines_of, new_grid, page_for, print_lines
from reports.text.recommendation_uses import own_cells, own_heads, uses_told

_NARROW = 4.0
"""A break-even is told where its interval's ends differ by at most this factor: otherwise nobody knows where it is."""
SCREEN_LINES = 24
"""Of a terminal that nobody has made larger."""
MOST_ROWS, FEWEST_ROWS = 6, 5
"""Variants on the first screen, fewer where more is to be said; what the user has now stands below them."""
MOST_BESIDE = 2
"""Of them so many at most that may not be recommended."""
_ALIKE = 1.05
"""Up to this ratio two figures are told as alike."""
_TELL = {"read": "reads", "save": "saves", "read_memory": "to read", "save_memory": "to save"}
_HEADS = {
    **{"read": "read\nms", "save": "save\nms", "size": "size\nMB", "time": "time\nms"},
    **{"read_memory": "read\npeak MB", "save_memory": "save\npeak MB"},
    USE: "a day\ns",
}
_HEAD_WIDTH = 13
"""What heads of other operations are broken to."""
_FIT_BESIDE = 3
"""So many figures have their units beside their names; of more they stand below."""


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
    about: str = ""
    """What the user calls the data; empty: the name of the data set."""
    yours: bool = False
    """Whether the baseline is what the user has now; else it is a plain call that was measured besides."""
    cautions: tuple[str, ...] = ()
    """What a user of the first should know beyond its figures."""
    folder: str = ""
    """Where the samples lie."""
    again: str = ""
    """The command that gives the same answer from them."""
    remote: tuple[str, ...] = ()
    """Where data lie remote: from which selectivity reading near the storage beats fetching the files."""
    parts: tuple[tuple[str, str], ...] = ()
    """Further lines of Python, each use in words with what it takes: several lines are one text."""


def show(answer: Answer, console: Console, *, explain: bool = False) -> None:
    """Print the answer, which fits a screen, then where it comes from: shortened, or all of it. Always 100 columns
    wide."""
    page, found = page_for(console), answer.found
    print_lines(page, [_title(answer)])
    page.print()
    if not found.ranked:
        _show_nothing(page, answer)
    else:
        _show_first(page, answer, explain)
    if explain:
        _explain(page, answer)
    else:
        _shorten(page, answer)
    print_lines(page, [WHOSE_CHOICES])


def _title(answer: Answer) -> str:
    question = answer.question
    amount = f"{question.rows:,} {COUNTED.get(question.conditions.target, 'rows')}"
    where = conditions_text(question.conditions).removeprefix("track , ")
    return f"{answer.about or question.dataset}, {amount}, on {question.machine}, {where}"


# --- the first screen --------------------------------------------------------------------------------------------


def _show_first(page: Console, answer: Answer, explain: bool) -> None:
    """What to use, for what gain, how sure that is, the lines to paste, and the best ones as a table."""
    found = answer.found
    about = [f"  {text}" for text in (*_gain(answer), *_certainty(found), *_wishes(found))]
    cautions = [f"  {text}" for text in answer.cautions]
    python = [*answer.imports, *answer.save.split("\n"), *answer.read.split("\n")]
    python += [line for part in answer.parts for line in _of_part(*part)]
    gains = _gains_of_accepting(found)
    print_lines(page, [f"recommended: {found.ranked[0].candidate.variant}"], style="bold green")
    print_lines(page, about)
    print_lines(page, cautions, style="yellow")
    page.print()
    for line in python:
        # Lines to paste must not be broken by the width of a page.
        page.print(line, markup=False, highlight=False, soft_wrap=True)
    page.print()
    # The title, three empty lines, the first line, the head of the table, and what the user has now.
    taken = 7 + sum(map(lines_of, (*about, *cautions, *python, *gains)))
    rows = min(max(SCREEN_LINES - taken, FEWEST_ROWS), MOST_ROWS)
    page.print(_grid(answer, [*found.ranked, *found.not_accepted] if explain else _shown(found, rows)))
    print_lines(page, gains)


def _of_part(title: str, text: str) -> Sequence[str]:
    """What it is for stands above several lines, and behind one that leaves room for it."""
    whole = f"{text}  # {title}"
    return (whole,) if "\n" not in text and lines_of(whole) == 1 else (f"# {title}", *text.split("\n"))


def _gain(answer: Answer) -> Iterator[str]:
    """What is recommended against what the user has now, seen from there."""
    found, now = answer.found, answer.found.baseline
    if now is None or not (now.ratios or answer.yours):
        return
    name = _named(answer, now)
    if now.candidate.variant == found.ranked[0].candidate.variant:
        yield f"{name}: that already, nothing to change"
    elif not now.ratios:
        yield f"{name}: no figures to compare, {now.candidate.reason}"
    else:
        titles = found.preferences.title
        yield f"{name}: {', '.join(_compared(each, ratio, titles(each)) for each, ratio in now.ratios.items())}"
        if now.candidate.losses and not found.ranked[0].candidate.losses:
            yield f"it changes this data: {'; '.join(now.candidate.losses)}"


def _named(answer: Answer, now: Baseline) -> str:
    title = now.candidate.title or now.candidate.variant
    rows = "" if now.rows is None else f", at {now.rows:,} rows"
    return f"your {title} now{rows}" if answer.yours else f"{title} by the plain call{rows}"


def _compared(name: str, ratio: Ratio, title: str = "") -> str:
    """'reads 9 times as slowly', 'as large'; with a doubt where the rounds may show the difference by chance."""
    alike = 1 / _ALIKE < ratio.ratio < _ALIKE
    perhaps = "perhaps " if ratio.tied else ""
    if name == "size":
        return "as large" if alike else f"{perhaps}{_times(ratio.ratio)} times as large"
    if name.endswith("_memory"):
        return f"{'as much' if alike else f'{perhaps}{_times(ratio.ratio)} times the'} memory {_TELL[name]}"
    if name == USE:
        return "takes as long a day" if alike else f"{perhaps}takes {_times(ratio.ratio)} times as long a day"
    if name not in _TELL:
        return f"{title} in {'as long' if alike else f'{perhaps}{_times(ratio.ratio)} times as long'}"
    if alike:
        return f"{_TELL[name]} as fast"
    if ratio.ratio > 1:
        return f"{_TELL[name]} {perhaps}{_times(ratio.ratio)} times as slowly"
    return f"{_TELL[name]} {perhaps}{_times(1 / ratio.ratio)} times as fast"


def _times(ratio: float) -> str:
    """Two digits are enough to decide by: '11', '9', '1.6', '0.09'."""
    if ratio >= 10:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}".removesuffix(".0") if ratio >= 1 else f"{ratio:.2g}"


def _certainty(found: Recommendation) -> Iterator[str]:
    first, scope = found.ranked[0], _scope(found.preferences)
    if first.probability is None:
        yield f"how sure: too few rounds to say{_why_few(found)}"
    else:
        rounds = len(first.candidate.rounds)
        yield f"how sure: the best{scope} with probability {first.probability:.2f} (over {rounds} rounds)"
    tied = [_names(found)[each.candidate.variant] for each in found.tied[1:]]
    if tied:
        # A probability of 0.95 does not tell apart: the intervals are two-sided.
        takes = "" if first.probability is None else f" (it takes {MOST_OF_TIED:.3f} to tell)"
        yield _on_a_line("cannot be told from: ", tied, takes)


def _on_a_line(head: str, names: Sequence[str], tail: str) -> str:
    """As many of the names as a line holds, but one at least, and how many more there are."""
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        line = f"{head}{', '.join(names[:shown])}{more}{tail}"
        if lines_of(f"  {line}") == 1:
            break
    return line


def _why_few(found: Recommendation) -> str:
    lost = sum(reason == NOT_COUNTED for _, reason in found.dropped)
    if lost:
        return f", as the machine was not at rest (of {lost} variants none counts)"
    if any(cell.uncounted for cell in found.ranked[0].candidate.cells.values()):
        return ", as the machine was not at rest ('doctor' looks at it)"
    return "; a longer measurement (--budget) gives more"


def _names(found: Recommendation) -> dict[str, str]:
    """Short names, the same wherever a variant is named."""
    return short_labels(each.candidate.variant for each in (*found.ranked, *found.not_accepted))


def _scope(preferences: Preferences) -> str:
    """Of which formats something is the best; nothing where all are accepted."""
    accepted = STAGES[: STAGES.index(preferences.accept) + 1]
    return "" if len(accepted) == len(STAGES) else f" of the {' and '.join(accepted)} formats"


def _wishes(found: Recommendation) -> Iterator[str]:
    """What decides, as it was understood; and how what is recommended meets what is needed."""
    preferences = found.preferences
    if preferences.uses:
        yield f"understood: {'; '.join(use.told for use in preferences.uses)}; their time a day is compared"
    shares = weights(preferences)
    told = []
    if not (preferences.uses and len(shares) == 1):
        told.append("by " + ", ".join(f"{preferences.title(name)} {share:.0%}" for name, share in shares.items()))
    if preferences.reads_per_save is not None:
        told.append(f"time: one save and {preferences.reads_per_save:g} reads")
    if preferences.bandwidth_bytes_per_s is not None:
        told.append(f"times include the transfer at {preferences.bandwidth_bytes_per_s / 1e6:g} MB/s")
    if preferences.needs:
        candidate = found.ranked[0].candidate
        told.append(f"needs: {', '.join(judged(candidate, need).told for need in preferences.needs)}")
    if told:
        yield "; ".join(told)


def _shown(found: Recommendation, rows: int = MOST_ROWS) -> list[Ranked]:
    """The best ones, and behind them the best of each stage that is not accepted."""
    best_of_stage: dict[str, Ranked] = {}
    for each in found.not_accepted:
        best_of_stage.setdefault(each.candidate.stage, each)
    beside = list(best_of_stage.values())[:MOST_BESIDE]
    return [*found.ranked[: rows - len(beside)], *beside]


def _grid(answer: Answer, shown: Sequence[Ranked]) -> Grid:
    """A line for each variant, and one for what the user has now where it is none of them."""
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
    """The score; as in every table, '=' is what cannot be told from the first."""
    tied = each.against_first is not None and each.against_first.tied and each.score != 1
    return f"{'=' if tied else ''}{number_text(each.score)}"


def _grid_of_multiples(answer: Answer, shown: Sequence[Ranked]) -> Grid:
    """How many times the best each figure is, and the first one's the score, with its interval."""
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


def _labelled(answer: Answer, headers: Sequence[str], lines: Sequence[tuple[str, Sequence[str]]]) -> Grid:
    """A grid of cells by variant, with short names and what must be known beside them."""
    found = answer.found
    width = label_width_of(headers, [cells for _, cells in lines], padding=2)
    names, marks = _names(found), _marks(answer)
    grid = new_grid()
    grid.add_column("variant", no_wrap=True)
    for header in headers:
        grid.add_column(header, justify="right", no_wrap=True)
    for variant, cells in lines:
        ranked = variant in names
        label = names[variant] if ranked or found.baseline is None else _named(answer, found.baseline)
        grid.add_row(escape(_label(label, marks.get(variant, ""), width)), *cells)
    return grid


def _marks(answer: Answer) -> dict[str, str]:
    """What a reader must know of a variant beside its name: that it is not established, or what the user has now."""
    found = answer.found
    now = found.baseline.candidate.variant if found.baseline is not None and answer.yours else None
    marks = {}
    for candidate in (each.candidate for each in (*found.ranked, *found.not_accepted)):
        told = [] if candidate.stage == STAGES[0] else [_stage_text(candidate)]
        told += ["yours now"] if candidate.variant == now else []
        whole = read_whole(candidate, found.preferences)
        told += [f"all of it to {whole[0]}{_more(whole)}"] if whole else []
        marks[candidate.variant] = f"({', '.join(told)})" if told else ""
    return marks


def _label(name: str, mark: str, width: int) -> str:
    """On one line where there is room for it."""
    whole = f"{name} {mark}".rstrip()
    if len(whole) <= width:
        return whole
    return "\n ".join((folded(name, width), *textwrap.wrap(mark, max(width - 1, 20))))


def _stage_text(candidate: Candidate) -> str:
    """Also of one of which nobody tells."""
    return stage_text(candidate.maturity) if candidate.maturity is not None else candidate.stage


def _gains_of_accepting(found: Recommendation) -> list[str]:
    """What could be recommended if more were accepted, and how much better it is."""
    best, lines = 1.0, []
    for stage in STAGES:
        of_stage = [each for each in found.not_accepted if each.candidate.stage == stage]
        if of_stage and of_stage[0].score * _ALIKE < best and not _is_tied(of_stage[0]):
            first, best = of_stage[0], of_stage[0].score
            told = f"{first.candidate.variant} ({_stage_text(first.candidate)})"
            lines.append(f"{told}: score {_times(1 / best)} times better; --accept {stage} allows it")
    if found.not_accepted and not lines:
        lines.append("no young or experimental format (--accept) is shown to be better")
    return lines


def _is_tied(each: Ranked) -> bool:
    return each.against_first is not None and bool(each.against_first.tied)


# --- nothing to recommend ----------------------------------------------------------------------------------------


def _show_nothing(page: Console, answer: Answer) -> None:
    found = answer.found
    if found.not_accepted:
        accepted = " or ".join(STAGES[: STAGES.index(found.preferences.accept) + 1])
        needs = f" and satisfies the needs ({', '.join(found.preferences.needs)})" if found.preferences.needs else ""
        print_lines(page, [f"nothing that was measured is {accepted}{needs}"], style="bold")
        print_lines(page, [f"  {line}" for line in _would_be_recommended(found)])
        page.print()
        page.print(_grid(answer, _shown(found)))
    elif all(reason == NOT_COUNTED for _, reason in found.dropped):
        said = "no sample counts: the machine was not at rest; try again when it is ('doctor' looks at it)"
        print_lines(page, [said], style="bold")
    else:
        print_lines(page, ["nothing that was measured satisfies the needs"], style="bold")
        # Data that refuse an operation refuse it to all.
        print_lines(page, [f"  {reason}" for reason in dict.fromkeys(_lacking(found))])


def _lacking(found: Recommendation) -> Iterator[str]:
    return (reason for _, reason in found.dropped if reason.startswith(NO_FIGURE))


def _would_be_recommended(found: Recommendation) -> Iterator[str]:
    best: Ranked | None = None
    for stage in STAGES:
        of_stage = [each for each in found.not_accepted if each.candidate.stage == stage]
        if of_stage and (best is None or of_stage[0].score < best.score):
            best = of_stage[0]
            yield f"--accept {stage} recommends {best.candidate.variant} ({_stage_text(best.candidate)})"


# --- where it comes from -----------------------------------------------------------------------------------------


def _shorten(page: Console, answer: Answer) -> None:
    """A line or two of each part, and how to see the rest without measuring again."""
    found = answer.found
    page.print()
    lines = [f"why: {each.sentence}" for each in reasons(found)[:1]]
    changes = _break_evens(found)
    lines += [f"the answer changes (in time alone): {changes[0]}{_more(changes)}"] if changes else []
    lines += [f"where data lie remote: {text}" for text in answer.remote]
    lines += [f"left out: {text}" for text in [_grouped(found.dropped)] if text]
    warnings = [remark for remark in answer.remarks if remark.startswith("warning: ")]
    lines += [remark for remark in answer.remarks if remark not in warnings]
    lines += [f"{warnings[0]}{_more(warnings)}"] if warnings else []
    lines += [f"all of it, without measuring again: {answer.again} --explain"] if answer.again else []
    print_lines(page, lines)


def _more(lines: Sequence[str]) -> str:
    return f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""


def _grouped(dropped: Sequence[tuple[str, str]]) -> str:
    """'cannot: append: csv 2, orc; refused: hdf5-table', by the words before a reason's colon."""
    by_reason: dict[str, dict[str, int]] = {}
    for variant, reason in dropped:
        head = reason if reason.startswith(CANNOT) else reason.partition(": ")[0]
        formats = by_reason.setdefault(head, {})
        formats[format_name(variant)] = formats.get(format_name(variant), 0) + 1
    return "; ".join(
        f"{head}: {', '.join(name if count == 1 else f'{name} {count}' for name, count in formats.items())}"
        for head, formats in by_reason.items()
    )


def _explain(page: Console, answer: Answer) -> None:
    found = answer.found
    everything = [*found.ranked, *found.not_accepted]
    if len({each.candidate.rounds for each in everything}) > 1:
        print_lines(page, ["rounds differ: what a whole round was slower or faster is taken out of the times"])
    if everything:
        page.print()
        print_lines(page, ["beside the best"], style="bold")
        page.print(_grid_of_multiples(answer, everything))
    _section(page, "what each use takes", uses_told(found))
    why = [f"{each.variant} (best in {', '.join(each.wins)}) {each.sentence}" for each in reasons(found)]
    _section(page, "why", why)
    _section(page, "where the answer changes (in time alone)", _break_evens(found))
    _section(page, "where data lie remote", answer.remote)
    _section(page, "not established", _not_established(everything))
    _section(page, "left out", [f"{variant}: {reason}" for variant, reason in found.dropped])
    _section(page, "remarks", [f"all samples: {answer.folder}", *answer.remarks])
    page.print()


def _not_established(everything: Sequence[Ranked]) -> list[str]:
    """Each format that is not, with the reason that its adapter gives; of a format of which another call is, the
    call."""
    established = {format_name(each.candidate.variant) for each in everything if each.candidate.stage == STAGES[0]}
    told = {}
    for candidate in (each.candidate for each in everything):
        if candidate.maturity is not None and candidate.stage != STAGES[0]:
            name = format_name(candidate.variant)
            told[candidate.variant if name in established else name] = candidate.maturity
    return [f"{name} is {stage_text(maturity)}: {maturity.reason}" for name, maturity in told.items()]


def _section(page: Console, title: str, told: Iterable[str]) -> None:
    lines = list(told)
    if lines:
        page.print()
        print_lines(page, [title], style="bold")
        print_lines(page, [f"  {line}" for line in lines])


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
