"""`format-bench doctor`: is this machine fit to measure?"""

from __future__ import annotations

from pathlib import Path

import click

from format_bench.terminal import console, errors_told


@click.command()
@click.option(
    "--work-dir",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where files would be written and read.",
)
def doctor(work_dir: Path) -> None:
    """Say whether this machine is fit to measure, and what to do about it."""
    with errors_told():
        from bench_runner.machine import doctor as examination

        examination.render(examination.examine(work_dir), console())
