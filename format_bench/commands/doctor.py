"""`format-bench doctor`: check whether this machine is fit for measuring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from format_bench.terminal import console, errors_told

if TYPE_CHECKING:
    from rich.console import Console

    from bench_runner.machine.doctor import Finding


@click.command()
@click.option(
    "--work-dir",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder in which a run would write and read its files. [default: the current folder]",
)
def doctor(work_dir: Path) -> None:
    """Check whether this machine is fit for measuring.

    Takes about 5 seconds. Each finding is 'good', 'hint' (worth knowing) or 'bad' (figures suffer), with what to do
    about it.
    """
    with errors_told():
        from bench_runner.machine.doctor import examine

        show(examine(work_dir), console())


def show(findings: list[Finding], console: Console) -> None:
    """Print the findings, with the worst last, and then the verdict. The output is at most 100 columns wide."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from bench_runner.machine.doctor import LEVELS, verdict

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("check", no_wrap=True)
    table.add_column("finding; what to do")
    style = {"good": "green", "hint": "yellow", "bad": "bold red"}
    for finding in sorted(findings, key=lambda finding: LEVELS.index(finding.level)):
        found = Text(finding.measured)
        if finding.remedy:
            found.append(f"\n{finding.remedy}", style="dim")
        table.add_row(Text(finding.level, style=style[finding.level]), finding.what, found)
    console.print(table, width=min(console.width, 100), soft_wrap=False)
    console.print(Text(verdict(findings)), width=min(console.width, 100))
