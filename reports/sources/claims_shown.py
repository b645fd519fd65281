"""Show published claims next to a run, on the terminal and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Run
from reports.analysis.repeat_command import command_text
from reports.sources import documents_tables, near_storage_tables
from reports.sources.claims import SOURCES, Judged, judged
from reports.sources.judgement import count_text
from reports.sources.side_by_side import SideBySide
from reports.text.page import labelled_grid, markdown_table, page_for, print_lines

SLIPS = "errors in the source, found by recalculating printed figures"

BEHIND: Mapping[str, Callable[[Sequence[Run]], tuple[SideBySide, ...]]] = {
    "near-storage": near_storage_tables.tables,
    "documents": documents_tables.tables,
}
"""For each source, the function that compares our figures with published tables. The resulting tables are printed after
the claims."""

_HEAD_WIDTH = 10
"""Column titles are wrapped at this many characters."""


def show(runs: Sequence[Run], name: str, console: Console) -> None:
    """Print each claim with its verdict, the published figures, the figures of the runs, and the reason."""
    source, page = SOURCES[name], page_for(console)
    found = judged(runs, source)
    page.print()
    print_lines(page, [f"compared with {source.title}: {count_text([each.verdict for each in found])}"], style="bold")
    for each in found:
        print_lines(page, [f"{each.verdict.value}: {each.claim.statement} ({each.claim.place})"])
        print_lines(page, [f"  {text}" for text in _details(each)])
    for beside in behind(runs, name):
        page.print()
        print_lines(page, [beside.title], style="bold")
        heads = ["\n".join(textwrap.wrap(head, _HEAD_WIDTH)) for head in beside.head[1:]]
        page.print(labelled_grid(beside.head[0], heads, [(line[0], line[1:], "") for line in beside.texts]))
    if source.slips:
        page.print()
        print_lines(page, [SLIPS], style="bold")
        for slip in source.slips:
            print_lines(page, [f"{slip.place}: {slip.printed}", f"  {slip.right}", f"  {slip.matters}"])


def behind(runs: Sequence[Run], name: str) -> tuple[SideBySide, ...]:
    """Return the tables that are printed after the claims of a source. Return an empty tuple if the source has none."""
    return BEHIND[name](runs) if name in BEHIND else ()


def _details(each: Judged) -> Iterator[str]:
    yield from (f"published: {text}" for text in each.published)
    yield from (f"ours: {text}" for text in _ours(each))
    if each.reason:
        yield each.reason


def _ours(each: Judged) -> Iterator[str]:
    if each.conditions is not None:
        where = conditions_text(each.conditions).removeprefix("track , ")
        where += f", machine {each.machine}" if each.machine else ""
        yield from (f"{text} ({each.claim.measured}, {where})" for text in each.ours)


def markdown(runs: Sequence[Run], name: str) -> str:
    """Return each claim with its verdict, figures and reason as Markdown."""
    source = SOURCES[name]
    found = judged(runs, source)
    commands = ", ".join(f"`{command_text(run.info.command)}`" for run in runs if run.info.command)
    words = f" from {commands}" if commands else ""
    told = (
        f"Made by `report RUN --against {name} --markdown`{words}. Our figures are medians of verified rounds. The "
        "published ones are from other machines and versions, so compare relations rather than values."
    )
    head = ("claim", "where", "published", "ours", "verdict", "why")
    table = markdown_table(head, map(_row, found))
    parts = [f"# Comparison with {source.title}", told, f"## {count_text([each.verdict for each in found])}", table]
    parts += [f"## {grid.title}\n\n{markdown_table(grid.head, grid.texts)}" for grid in behind(runs, name)]
    if source.slips:
        rows = [(slip.place, slip.printed, slip.right, slip.matters) for slip in source.slips]
        slips = markdown_table(("where", "printed", "correct", "effect"), rows)
        parts.append(f"## {SLIPS}\n\n{slips}")
    return "\n\n".join(parts) + "\n"


def _row(each: Judged) -> tuple[str, ...]:
    claim = each.claim
    published, ours = "<br>".join(each.published), "<br>".join(_ours(each))
    return (claim.statement, claim.place, published, ours, each.verdict.value, each.reason)
