"""`format-bench list`: what there is to measure, and what of it is installed."""

from __future__ import annotations

import click

from format_bench.terminal import errors_told


@click.command("list")
@click.argument(
    "what", type=click.Choice(["suites", "formats", "storages", "stores", "datasets", "cells"]), default="suites"
)
def list_(what: str) -> None:
    """List suites, formats, image storages or document stores (and which are installed), data sets, or the cells of
    every suite."""
    with errors_told():
        from format_bench.commands.listings import LISTINGS

        for line in LISTINGS[what]():
            click.echo(line)
