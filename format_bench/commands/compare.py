"""`format-bench compare`: show what changed between two stored runs by more than noise."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    compared. A change is the ratio of the new figure to the old one. A change is reported if it is certain
    (the 95 % interval of the ratio excludes 1), larger than --fail-above, and larger than the noise (how much the
    ratios of all operations scatter). To compare two versions of a library, `side-by-side` measures both in turn and
    detects smaller changes. Runs over the hosts of a cluster are compared host by host.

    Exit code: 0 if no reported change is for the worse, 3 if one is, 2 if there was nothing to compare.
    """
    with errors_told():
        from bench_runner.run.cluster.division import is_division
        from format_bench.api.compare import compare as compared
        from format_bench.api.compare import compare_hosts

        if is_division(before) or is_division(after):
            found, refused = compare_hosts(before, after, least_change=least_change, anyway=anyway)
            for reason in refused:
                click.echo(f"not compared: {reason}", err=True)
            return _show_hosts(found, form)
        return show(compared(before, after, least_change=least_change, anyway=anyway), form)


def _show_hosts(found: Mapping[str, RunComparison], form: str | None) -> int:
    """Print a comparison for each host of a cluster. Return the highest exit code."""
    if form == "json":
        from reports.text.comparison import as_json

        click.echo(json.dumps({host: json.loads(as_json(each)) for host, each in found.items()}, indent=1))
        return max(REGRESSION if each.failed else 0 for each in found.values())
    codes = []
    for host, each in found.items():
        click.echo(f"## {host}\n" if form else f"--- {host} ---")
        codes.append(show(each, form))
    return max(codes)


def show(found: RunComparison, form: str | None) -> int:
    """Print a comparison as text (`form` is None), 'markdown' or 'json'. Return the exit code."""
    from reports.text import comparison

    if form is None:
        comparison.show(found, console())
    else:
        click.echo(comparison.markdown(found) if form == "markdown" else comparison.as_json(found))
    return REGRESSION if found.failed else 0
