"""`format-bench compare`: show what changed between two stored runs by more than noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from format_bench.options import ANYWAY, FAIL_ABOVE, FORM
from format_bench.terminal import REGRESSION, console, errors_told

if TYPE_CHECKING:
    from reports.analysis.compare import RunComparison


@click.command()
@click.argument("before", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("after", metavar="RUN", type=click.Path(path_type=Path))
@FAIL_ABOVE
@ANYWAY
@FORM
def compare(before: Path, after: Path, least_change: float, anyway: bool, form: str | None) -> int:
    """Show what changed between two stored runs.

    RUN is a result folder: first the old run, then the new one. Times, sizes and peak memory of each operation are
    compared. A change is the ratio of the new figure to the old one. It is reported if its 95 % interval excludes 1 and
    it is larger than the noise, which is estimated from the differences of all figures between the two runs. To compare
    two versions of a library, `side-by-side` measures both in turn and detects smaller changes.

    Exit code: 0 if nothing is worse, 3 if something is worse, 2 if there was nothing to compare.
    """
    with errors_told():
        from format_bench.api.compare import compare as compared

        return show(compared(before, after, least_change=least_change, anyway=anyway), form)


def show(found: RunComparison, form: str | None) -> int:
    """Print a comparison as text (`form` is None), 'markdown' or 'json'. Return the exit code."""
    from reports.text import comparison

    if form is None:
        comparison.show(found, console())
    else:
        click.echo(comparison.markdown(found) if form == "markdown" else comparison.as_json(found))
    return REGRESSION if found.failed else 0
