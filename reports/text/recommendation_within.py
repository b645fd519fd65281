"""Print the advice on the settings of one format: which settings to change, how much the change improves, and the lines
of Python."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench_runner.results.statistics import Ratio
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.recommend import weights
from reports.analysis.recommendation.within import LEAST_GAIN, Row, Within
from reports.analysis.units import number_text
from reports.analysis.words import WHOSE_CHOICES
from reports.text.page import page_for, print_lines
from reports.text.recommendation import explained, title_of


def show(answer: Answer, advice: Within, console: Console, *, explain: bool = False) -> None:
    """Print the advice and, if `explain` is set, all figures. The output is always 100 columns wide."""
    page = page_for(console)
    print_lines(page, [title_of(answer)])
    page.print()
    print_lines(page, [_headline(advice)], style="bold green")
    print_lines(page, [f"  {line}" for line in _about(answer, advice)])
    page.print()
    for line in (*answer.imports, *answer.save.split("\n"), *answer.read.split("\n")):
        page.print(line, markup=False, highlight=False, soft_wrap=True)
    if advice.advised.change.arguments:
        settings = json.dumps({"write_table": advice.advised.change.arguments}, ensure_ascii=False)
        page.print(f"as JSON: {settings}", markup=False, highlight=False, soft_wrap=True)
    page.print()
    page.print(_grid(answer, advice))
    print_lines(page, list(_below(answer, explain)))
    if explain:
        page.print()
        explained(page, answer)
        print_lines(page, [WHOSE_CHOICES])


def _headline(advice: Within) -> str:
    if advice.keeps_default:
        return f"keep the default settings of {advice.format}"
    return f"settings of {advice.format}: {advice.advised.change.text}"


def _about(answer: Answer, advice: Within) -> Iterator[str]:
    if advice.keeps_default:
        yield (
            f"none of the {advice.measured - 1} other variants measured is clearly better by at least {LEAST_GAIN:.0%}"
        )
        if any(row.ranked.score <= 1 - LEAST_GAIN for row in advice.rows):
            yield "one below may be better, but its rounds do not show it: a longer measurement (--budget) tells more"
    else:
        ratios = ", ".join(
            f"{number_text(ratio)} times the {answer.found.preferences.title(name)}"
            for name, ratio in advice.advised.ranked.ratios.items()
        )
        yield f"compared with the default: {ratios}"
    shares = ", ".join(
        f"{answer.found.preferences.title(name)} {share:.0%}"
        for name, share in weights(answer.found.preferences).items()
    )
    yield f"weights: {shares}"
    yield f"variant: {advice.advised.change.variant}"


def _grid(answer: Answer, advice: Within) -> Table:
    """Return a table in which every number is a multiple of the default variant's number."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("")
    grid.add_column("score (95 %)", justify="right", no_wrap=True)
    for name in advice.rows[0].ranked.ratios:
        grid.add_column(f"x {answer.found.preferences.title(name)}", justify="right")
    grid.add_column("rounds", justify="right")
    grid.add_column("change")
    for row in advice.rows:
        ratios = map(number_text, row.ranked.ratios.values())
        rounds = str(len(row.ranked.candidate.rounds))
        grid.add_row(row.title, _score(row), *ratios, rounds, Text(row.change.text))
    return grid


def _score(row: Row) -> str:
    ratio: Ratio | None = row.ranked.against_first
    if row.change.parts == 0 or ratio is None or ratio.low is None or ratio.high is None:
        return number_text(row.ranked.score)
    return f"{number_text(row.ranked.score)} ({number_text(ratio.low)}-{number_text(ratio.high)})"


def _below(answer: Answer, explain: bool) -> Iterator[str]:
    yield "numbers are multiples of the default's; a score below 1 is better than the default"
    if not explain:
        yield from answer.remarks
    if answer.convert:
        yield f"the whole table in this format, verified: {answer.convert}"
    if answer.again and not explain:
        yield f"details, without measuring again: {answer.again} --explain"
