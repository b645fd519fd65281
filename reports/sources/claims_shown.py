"""Published claims beside a run, for people: on the terminal, and as Markdown.

It knows which sources there are, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from bench_runner.results.records import Run
from reports.analysis.labels import conditions_text
from reports.sources import f3, lance
from reports.sources.claims import Judged, Source, count_text, judged
from reports.text.page import page_for, print_lines

SOURCES: Mapping[str, Source] = {module.SOURCE.name: module.SOURCE for module in (lance, f3)}
"""By their names on the command line; the thesis has modules of its own."""


def show(runs: Sequence[Run], name: str, console: Console) -> None:
    """Print each claim with its verdict: what is published, what the runs have, and why."""
    source, page = SOURCES[name], page_for(console)
    found = judged(runs, source)
    page.print()
    print_lines(page, [f"beside {source.title}: {count_text(found)}"], style="bold")
    for each in found:
        print_lines(page, [f"{each.verdict.value}: {each.claim.statement} ({each.claim.place})"])
        print_lines(page, [f"  {text}" for text in _details(each)])


def _details(each: Judged) -> Iterator[str]:
    yield from (f"published: {text}" for text in each.published)
    yield from (f"ours: {text}" for text in _ours(each))
    if each.reason:
        yield each.reason


def _ours(each: Judged) -> Iterator[str]:
    """Our figures, with what they are of, and under which conditions."""
    if each.conditions is not None:
        where = conditions_text(each.conditions).removeprefix("track , ")
        yield from (f"{text} ({each.measured}, {where})" for text in each.ours)


def markdown(runs: Sequence[Run], name: str) -> str:
    """The same as Markdown."""
    source = SOURCES[name]
    found = judged(runs, source)
    commands = ", ".join(f"`{' '.join(run.info.command)}`" for run in runs if run.info.command)
    words = f" from {commands}" if commands else ""
    told = (
        f"Made by `report RUN --against {name} --markdown`{words}. Figures are medians of verified rounds; those "
        "published are of other machines and versions, so relations say more than values."
    )
    return f"# Beside {source.title}\n\n{told}\n\n## {count_text(found)}\n\n{table(found)}\n"


def table(found: Sequence[Judged]) -> str:
    """Each claim in a row."""
    rows = [["claim", "where", "published", "ours", "verdict", "why"], ["---"] * 6]
    for each in found:
        beside = each.claim.statement, each.claim.place, "<br>".join(each.published), "<br>".join(_ours(each))
        rows.append([*beside, each.verdict.value, each.reason])
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
