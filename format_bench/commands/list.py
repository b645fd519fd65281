"""`format-bench list`: list what can be measured, and what is installed."""

from __future__ import annotations

import click

from format_bench.terminal import errors_told


@click.command("list")
@click.argument(
    "what", type=click.Choice(["suites", "formats", "storages", "stores", "datasets", "cells"]), default="suites"
)
def list_(what: str) -> None:
    """List suites, formats, storages, stores, data sets or cells.

    \b
    suites     what `run` can measure: data sets, operations, and traits for `run --over` [default]
    formats    table formats: calls, versions, settings, maturity, and how to install what is missing
    storages   the same for storages of images
    stores     the same for document stores
    datasets   built-in data sets and their parameters
    cells      every combination of data set, variant and operation of the suites, one a line
    """
    with errors_told():
        from format_bench.commands.listings import LISTINGS

        for line in LISTINGS[what]():
            click.echo(line)
