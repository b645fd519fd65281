"""Which format for which use in the reference run, as a table for docs/access.md; and published claims beside it.

It knows the reference run, how reports rank and which sources there are; it writes no page.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_runner.results.records import Run
from reports.analysis.access.uses import has_uses, uses_of
from reports.analysis.tables import Table
from reports.sources import claims_shown
from reports.sources.claims import SOURCES, judged
from reports.sources.claims_shown import table
from reports.sources.judging import count_text
from tests import findings_table, reference_tables
from tests.reference_tables import tables_of

SUITE = "access"


def uses() -> str:
    """One table for each data set and set of conditions: the fastest call for each use, and who comes next."""
    found = [lines for run in _runs() for each in tables_of(run) for lines in _of(run, each)]
    if not found:
        return (
            "\nThe reference run has no suite `access` yet, so there are no figures here. `python main.py run access` "
            "gives yours.\n"
        )
    return "\n" + "\n".join(found) + "\n"


def _of(run: Run, found: Table) -> Iterator[str]:
    if SUITE not in run.info.suites or not has_uses(found):
        return
    yield f"`{found.dataset}`, {found.amount}, cache {found.conditions.cache}, on {run.info.machine.cpu}:\n"
    yield "| use | fastest call of its own | then, in multiples of it |\n| --- | --- | --- |"
    yield from (f"| {use.title} | {use.best} | {use.others} |" for use in uses_of(run, found))
    yield ""


def beside(name: str) -> str:
    """What the reference run says to each claim of a source."""
    found = judged(_runs(), SOURCES[name])
    counts = count_text([each.verdict for each in found])
    return f"\n{counts}. Ours are of {findings_table.machines()}.\n\n{table(found)}\n"


def behind(name: str, title: str) -> str:
    """The tables of a source whose titles begin so, with the reference run's figures beside."""
    found = [f"{each.title}:\n\n{claims_shown.grid_table(each)}\n" for each in claims_shown.behind(_runs(), name)]
    return "\n" + "\n".join(each for each in found if each.startswith(title))


def _runs() -> list[Run]:
    return list(reference_tables.runs())
