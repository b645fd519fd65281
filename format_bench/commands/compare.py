"""`format-bench compare`: what changed from one stored run to another, and is it more than noise?"""

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
    """Say what became slower, larger or hungrier from the first RUN to the second.

    A change counts when its interval excludes 1 and it is more than the noise that the two runs themselves show.
    Exit code 3: something is worse; 0: nothing is; 2: there was nothing to compare.
    """
    with errors_told():
        from format_bench.api.compare import compare as compared

        return told(compared(before, after, least_change=least_change, anyway=anyway), form)


def told(found: RunComparison, form: str | None) -> int:
    """Print a comparison for people, or as 'markdown' or 'json'; the exit code is its verdict."""
    from reports.text import comparison

    if form is None:
        comparison.show(found, console())
    else:
        click.echo(comparison.markdown(found) if form == "markdown" else comparison.as_json(found))
    return REGRESSION if found.failed else 0
