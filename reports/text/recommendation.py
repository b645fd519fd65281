"""Print a recommendation on the terminal: the answer on one screen, and below it a short account of how the answer was
obtained.

reports.analysis.recommendation.recommend makes every decision. reports.text.recommendation_json writes the same content
for programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from bench_runner.conditions import conditions_text
from bench_runner.data_kinds import kind_of_target
from bench_runner.results.statistics import Ratio
from bench_runner.variants import Variant
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import CANNOT, CHANGES, FIGURES, NO_FIGURE, NOT_COUNTED
from reports.analysis.recommendation.needs import judged
from reports.analysis.recommendation.preferences import STAGES, USE, Preferences
from reports.analysis.recommendation.race import BEHIND, MOST_OF_A_STAGE, NOT_ACCEPTED, ONLY_SCREENED
from reports.analysis.recommendation.reasons import reasons
from reports.analysis.recommendation.recommend import MOST_OF_TIED, Ranked, Recommendation, weights
from reports.analysis.units import number_text
from reports.analysis.words import WHOSE_CHOICES, stage_text
from reports.text.page import lines_of, page_for, print_lines
from reports.text.recommendation_grids import (
    FEWEST_ROWS,
    MOST_ROWS,
    and_more,
    baseline_name,
    best_shown,
    grid_of,
    grid_of_multiples,
    short_names,
    stage_of,
)
from reports.text.recommendation_uses import uses_told

_NARROW = 4.0
"""A break-even is a point at which the best variant changes. A break-even is shown only if the ends of its interval
differ by at most this factor. Otherwise the point is too uncertain."""
SCREEN_LINES = 24
"""Number of lines of a terminal of the usual size."""
_ALIKE = 1.05
"""Two figures are shown as equal if their ratio is at most this."""
_WHY_LEFT_OUT = {
    BEHIND: "worse on few rows",
    NOT_ACCEPTED: f"maturity not accepted, only the best {MOST_OF_A_STAGE} measured on more rows",
    ONLY_SCREENED: "measured on few rows only",
    CHANGES: "would change this data",
    "refused": "refuse this data",
    "another kind of result": "return another kind of object",
    "memory": "need too much memory",
    NOT_COUNTED: "no counted round, as the machine was busy",
}
"""Maps the first words of the full reason why a variant drops out to the wording of this reason on the first screen."""


def show(answer: Answer, console: Console, *, explain: bool = False) -> None:
    """Print the answer, which fits on a screen, and below it how the answer was obtained. This second part is short, or
    complete if `explain` is set.

    The output is always 100 columns wide.
    """
    page, found = page_for(console), answer.found
    print_lines(page, [title_of(answer)])
    page.print()
    if not found.ranked:
        _show_nothing(page, answer)
    else:
        _show_first(page, answer, explain)
    if explain:
        explained(page, answer)
    else:
        _shorten(page, answer)
    print_lines(page, [WHOSE_CHOICES])


def title_of(answer: Answer) -> str:
    """Return the first line: the data, the machine and the conditions."""
    question = answer.question
    amount = f"{question.rows:,} {kind_of_target(question.conditions.target).counted}"
    where = conditions_text(question.conditions).removeprefix("track , ")
    machine = f"{question.machine} ({answer.processor})" if answer.processor else question.machine
    return f"{answer.about or question.dataset}, {amount}, measured on {machine}, {where}"


# --- the first screen --------------------------------------------------------------------------------------------


def _show_first(page: Console, answer: Answer, explain: bool) -> None:
    """Print the recommended variant, what the user gains, how certain the answer is, the lines of Python to paste, and
    a table of the best variants."""
    found = answer.found
    about = [f"  {text}" for text in (*_gain(answer), *_certainty(found), *_wishes(found))]
    cautions = [f"  {text}" for text in answer.cautions]
    python = [*answer.imports, *answer.save.split("\n"), *answer.read.split("\n")]
    of_parts = [line for part in answer.parts for line in _of_part(*part)]
    gains = _gains_of_accepting(found)
    # Lines for the title, three empty lines, the first line, the head of the table, and the user's current variant.
    taken = 7 + sum(map(lines_of, (*about, *cautions, *python, *gains)))
    below = taken + sum(map(lines_of, of_parts)) > SCREEN_LINES - FEWEST_ROWS
    if not below:
        python += of_parts
        taken += sum(map(lines_of, of_parts))
    print_lines(page, [f"recommended: {found.ranked[0].candidate.variant}"], style="bold green")
    print_lines(page, about)
    print_lines(page, cautions, style="yellow")
    page.print()
    _paste(page, python)
    page.print()
    rows = min(max(SCREEN_LINES - taken, FEWEST_ROWS), MOST_ROWS)
    page.print(grid_of(answer, [*found.ranked, *found.not_accepted] if explain else best_shown(found, rows)))
    print_lines(page, gains)
    if below and of_parts:
        page.print()
        _paste(page, of_parts)


def _paste(page: Console, python: Sequence[str]) -> None:
    for line in python:
        # A line of Python must not be wrapped, so that the user can paste it.
        page.print(line, markup=False, highlight=False, soft_wrap=True)


def _of_part(title: str, text: str) -> Sequence[str]:
    """Return the lines of Python for an operation, with the operation's title as a comment. The comment is at the end
    of a single short line, otherwise above the lines."""
    whole = f"{text}  # {title}"
    return (whole,) if "\n" not in text and lines_of(whole) == 1 else (f"# {title}", *text.split("\n"))


def _gain(answer: Answer) -> Iterator[str]:
    """Yield sentences that compare the user's current variant with the recommended one."""
    found, now = answer.found, answer.found.baseline
    if now is None or not (now.ratios or answer.yours):
        return
    name = baseline_name(answer, now)
    if now.candidate.variant == found.ranked[0].candidate.variant:
        yield f"{name} is this variant already: nothing to change"
    elif not now.ratios:
        yield f"{name} has no figures to compare: {now.candidate.reason}"
    else:
        titles = found.preferences.title
        told = ", ".join(_compared(each, ratio, titles(each)) for each, ratio in now.ratios.items())
        yield f"{name}, compared with it: {told}"
        if now.candidate.losses and not found.ranked[0].candidate.losses:
            yield f"{name} changes this data: {'; '.join(now.candidate.losses)}"


def _compared(name: str, ratio: Ratio, title: str) -> str:
    """Return '9 times the read time' or 'the same size'. 'perhaps' is added if the difference may be chance."""
    what = title if name in (*FIGURES, USE) else f"time to {title}"
    if 1 / _ALIKE < ratio.ratio < _ALIKE:
        return f"the same {what}"
    return f"{'perhaps ' if ratio.tied else ''}{_times(ratio.ratio)} times the {what}"


def _times(ratio: float) -> str:
    """Return a ratio with two digits: '11', '9', '1.6', '0.09'."""
    if ratio >= 10:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}".removesuffix(".0") if ratio >= 1 else f"{ratio:.2g}"


def _certainty(found: Recommendation) -> Iterator[str]:
    first, scope = found.ranked[0], _scope(found.preferences)
    if first.probability is None:
        yield f"how sure: unknown, too few rounds{_why_few(found)}"
    else:
        rounds = len(first.candidate.rounds)
        yield f"how sure: the best variant{scope} with probability {first.probability:.2f} (from {rounds} rounds)"
    tied = [short_names(found)[each.candidate.variant] for each in found.tied[1:]]
    if tied:
        # The limit is not 0.95, because the intervals are two-sided.
        takes = "" if first.probability is None else f" (a clear win needs {MOST_OF_TIED:.3f})"
        yield _on_a_line("tied with it (=): ", tied, takes)


def _on_a_line(head: str, names: Sequence[str], tail: str) -> str:
    """Return a line with as many names as fit, but at least one. The number of names that are left out follows."""
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        line = f"{head}{', '.join(names[:shown])}{more}{tail}"
        if lines_of(f"  {line}") == 1:
            break
    return line


def _why_few(found: Recommendation) -> str:
    lost = sum(reason == NOT_COUNTED for _, reason in found.dropped)
    if lost:
        return f", as the machine was busy ({lost} variants have no counted round)"
    if any(cell.uncounted for cell in found.ranked[0].candidate.cells.values()):
        return ", as the machine was busy ('doctor' examines it)"
    return "; a longer measurement (--budget) gives more"


def _scope(preferences: Preferences) -> str:
    """Return the accepted maturity, such as ' of the established formats'. Return '' if every maturity is accepted."""
    accepted = STAGES[: STAGES.index(preferences.accept) + 1]
    return "" if len(accepted) == len(STAGES) else f" of the {' and '.join(accepted)} formats"


def _wishes(found: Recommendation) -> Iterator[str]:
    """Yield lines that show how the program understood the user's preferences, and with which figures the recommended
    variant satisfies the required abilities."""
    preferences = found.preferences
    if preferences.uses:
        yield f"decided by the time per day of: {'; '.join(use.told for use in preferences.uses)}"
    shares = weights(preferences)
    told = []
    if not (preferences.uses and len(shares) == 1):
        told.append("weights: " + ", ".join(f"{preferences.title(name)} {share:.0%}" for name, share in shares.items()))
    if preferences.reads_per_save is not None:
        told.append(f"time is that of one save and {preferences.reads_per_save:g} reads")
    if preferences.bandwidth_bytes_per_s is not None:
        told.append(f"times include the transfer at {preferences.bandwidth_bytes_per_s / 1e6:g} MB/s")
    if preferences.needs:
        candidate = found.ranked[0].candidate
        told.append(f"needs met: {', '.join(judged(candidate, need).told for need in preferences.needs)}")
    if told:
        yield "; ".join(told)


def _gains_of_accepting(found: Recommendation) -> list[str]:
    """Return lines that name clearly better variants whose maturity the user does not accept, and how much better their
    scores are. If there are such variants but none is clearly better, a single line states this."""
    best, lines = 1.0, []
    for stage in STAGES:
        of_stage = [each for each in found.not_accepted if each.candidate.stage == stage]
        if of_stage and of_stage[0].score * _ALIKE < best and not _is_tied(of_stage[0]):
            first, best = of_stage[0], of_stage[0].score
            told = f"{first.candidate.variant} ({stage_of(first.candidate)})"
            lines.append(f"{told} scores {_times(1 / best)} times better; --accept {stage} allows it")
    if found.not_accepted and not lines:
        lines.append("no young or experimental format is clearly better (--accept would allow them)")
    return lines


def _is_tied(each: Ranked) -> bool:
    return each.against_first is not None and bool(each.against_first.tied)


# --- nothing to recommend ----------------------------------------------------------------------------------------


def _show_nothing(page: Console, answer: Answer) -> None:
    found = answer.found
    if found.not_accepted:
        accepted = " or ".join(STAGES[: STAGES.index(found.preferences.accept) + 1])
        needs = f" and satisfies the needs ({', '.join(found.preferences.needs)})" if found.preferences.needs else ""
        print_lines(page, [f"no measured variant is {accepted}{needs}"], style="bold")
        print_lines(page, [f"  {line}" for line in _would_be_recommended(found)])
        page.print()
        page.print(grid_of(answer, best_shown(found)))
    elif all(reason.endswith(NOT_COUNTED) for _, reason in found.dropped):
        said = "no round was counted, as the machine was busy: try again when it is idle ('doctor' examines it)"
        print_lines(page, [said], style="bold")
    else:
        print_lines(page, ["no measured variant satisfies the needs"], style="bold")
        # If the data do not allow an operation, all variants drop out for the same reason, which is printed once.
        print_lines(page, [f"  {reason}" for reason in dict.fromkeys(_lacking(found))])
        uncounted = sum(reason.endswith(NOT_COUNTED) for _, reason in found.dropped)
        if uncounted:
            told = f"  {uncounted} of {len(found.dropped)} variants have no counted round, as the machine was busy"
            print_lines(page, [f"{told}: try again when it is idle ('doctor' examines it)"])


def _lacking(found: Recommendation) -> Iterator[str]:
    return (reason for _, reason in found.dropped if reason.startswith(NO_FIGURE))


def _would_be_recommended(found: Recommendation) -> Iterator[str]:
    best: Ranked | None = None
    for stage in STAGES:
        of_stage = [each for each in found.not_accepted if each.candidate.stage == stage]
        if of_stage and (best is None or of_stage[0].score < best.score):
            best = of_stage[0]
            yield f"--accept {stage} would recommend {best.candidate.variant} ({stage_of(best.candidate)})"


# --- where it comes from -----------------------------------------------------------------------------------------


def _shorten(page: Console, answer: Answer) -> None:
    """Print one or two lines of each section of the full answer, then the command that prints everything."""
    found = answer.found
    page.print()
    lines = [f"figures of the recommended variant: {each.sentence}" for each in reasons(found)[:1]]
    changes = _break_evens(found)
    lines += [f"by time alone, {changes[0]}{and_more(changes)}"] if changes else []
    lines += [f"for remote data: {text}" for text in answer.remote]
    lines += [f"left out: {text}" for text in [_grouped(found.dropped)] if text]
    warnings = [remark for remark in answer.remarks if remark.startswith("warning: ")]
    lines += [remark for remark in answer.remarks if remark not in warnings]
    lines += [f"{warnings[0]}{and_more(warnings)}"] if warnings else []
    lines += [f"the whole table in this format, verified: {answer.convert}"] if answer.convert else []
    lines += [f"details, without measuring again: {answer.again} --explain"] if answer.again else []
    print_lines(page, lines)


def _grouped(dropped: Sequence[tuple[Variant, str]]) -> str:
    """Return the formats that were left out, grouped by reason, with the number of variants if there are several: '2
    csv, orc (cannot: append); hdf5-table (refused)'. Details after the colon of a reason are ignored, except for
    'cannot: ...'."""
    by_reason: dict[str, dict[str, int]] = {}
    for variant, reason in dropped:
        head = reason if reason.startswith(CANNOT) else reason.partition(": ")[0]
        formats = by_reason.setdefault(head, {})
        formats[variant.format_name] = formats.get(variant.format_name, 0) + 1
    return "; ".join(
        f"{', '.join(name if count == 1 else f'{count} {name}' for name, count in formats.items())} "
        f"({_WHY_LEFT_OUT.get(head, head)})"
        for head, formats in by_reason.items()
    )


def explained(page: Console, answer: Answer) -> None:
    """Print everything that the first screen leaves out."""
    found = answer.found
    everything = [*found.ranked, *found.not_accepted]
    if len({each.candidate.rounds for each in everything}) > 1:
        print_lines(page, ["variants have different rounds: times are corrected for the speed of each round"])
    if everything:
        page.print()
        print_lines(page, ["as multiples of the best"], style="bold")
        page.print(grid_of_multiples(answer, everything))
    _section(page, "time of each use", uses_told(found))
    why = [f"{each.variant} (best in {', '.join(each.wins)}) {each.sentence}" for each in reasons(found)]
    _section(page, "figures of the best", why)
    _section(page, "where the best changes, by time alone", _break_evens(found))
    _section(page, "for remote data", answer.remote)
    _section(page, "not established", _not_established(everything))
    _section(page, "left out", [f"{variant}: {reason}" for variant, reason in found.dropped])
    _section(page, "remarks", [f"all samples: {answer.folder}", *answer.remarks])
    page.print()


def _not_established(everything: Sequence[Ranked]) -> list[str]:
    """Return each format that is not established, with the reason that the format's adapter declares.

    If another variant of the same format is established, the line names the variant instead of the format.
    """
    established = {each.candidate.variant.format_name for each in everything if each.candidate.stage == STAGES[0]}
    told = {}
    for candidate in (each.candidate for each in everything):
        if candidate.maturity is not None and candidate.stage != STAGES[0]:
            name = candidate.variant.format_name
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
            since, until = (None if end is None else number_text(end) for end in (change.since, change.until))
            below = f"below {where} reads per save" if since is None else f"from {since} to {where} reads per save"
            above = "above" if until is None else f"from there to {until}"
        else:
            megabytes = [number_text(value / 1e6) for value in (at.median, at.low, at.high)]
            where = f"{megabytes[0]} MB/s ({megabytes[1]} to {megabytes[2]})"
            since, until = (None if end is None else number_text(end / 1e6) for end in (change.since, change.until))
            of = "a storage bandwidth of"
            below = f"below {of} {where}" if since is None else f"at {of} {since} to {where}"
            above = "above it" if until is None else f"from there to {until} MB/s"
        lines.append(f"{change.first} is best {below}, {above} {change.then}")
    return lines
