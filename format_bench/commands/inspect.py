"""`format-bench inspect`: show how a file is read, and its first rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from format_bench.options import READING, read_options
from format_bench.terminal import INTERRUPTED, console, errors_told


@click.command()
@click.argument("data", metavar="PATH", type=click.Path(path_type=Path))
@READING
@click.option("--key", metavar="FIELD", help="Read JSON Lines as documents; FIELD is unique in each.")
@click.option(
    "--rows",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of rows from which types are found. [default: 1,000,000]",
)
@click.option(
    "--first", "first_rows", type=click.IntRange(1, 100), default=5, show_default=True, help="First rows to show."
)
def inspect(data: Path, key: str | None, rows: int | None, first_rows: int, **options: Any) -> None:
    """Show how a file is understood: rows, columns and types, delimiter, warnings, first rows. Measures nothing.

    PATH and the options that describe it are those of `run --data` and `recommend --data`: with the same options, these
    read the file as shown here.
    """
    with errors_told():
        from format_bench.api.inspect import inspect as inspected
        from format_bench.progress import watching
        from format_bench.row_table import show_rows
        from format_bench.understood import understood_lines

        try:
            with watching() as watcher:
                found = inspected(
                    data, options=read_options(options), key=key, rows=rows, first_rows=first_rows, watcher=watcher
                )
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        for line in understood_lines(found.dataset, whole=True):
            click.echo(line)
        show_rows(found.first, console())
