"""`format-bench convert`: store the user's table in another format, and verify the copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from format_bench.options import READING, read_options
from format_bench.terminal import INTERRUPTED, errors_told

if TYPE_CHECKING:
    from format_bench.api.convert import Converted


@click.command()
@click.argument("data", metavar="IN", type=click.Path(path_type=Path))
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "variant",
    metavar="VARIANT",
    help="Format of OUT, e.g. parquet, or a variant such as 'parquet[engine=pyarrow,codec=zstd,level=3]'. 'list "
    "formats' shows all of them.",
)
@click.option(
    "--as-recommended",
    "recommended",
    metavar="RUN",
    type=click.Path(path_type=str),
    help="Take the variant that the run in this folder recommends, by the preferences of its command (--prefer, --use, "
    "--need, ...).",
)
@click.option("-d", "--datasets", metavar="NAME", multiple=True, help="The data set of RUN, if it has several.")
@click.option(
    "--allow-loss",
    metavar="COLUMN",
    multiple=True,
    help="Accept that the format changes this column, e.g. dates that CSV stores as text; '*' for all (repeatable).",
)
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@READING
def convert(**options: Any) -> None:
    """Store the whole table IN as OUT in another format, and verify the copy.

    IN is a table of any kind that 'run --data' reads; all of its rows are converted. The copy is read back and
    compared, column by column. OUT appears only if it is complete and right. A column that the format would change is
    an error, unless --allow-loss names it.

    Needs little memory for most formats, however large IN is. The types of a large CSV or JSON file are found in up to
    a million of its rows. A later value of another type is an error that names the line; set the type by --column then.

    \b
    Examples:
      format-bench convert my.csv my.parquet --as parquet
      format-bench convert my.csv my.parquet --as 'parquet[codec=zstd]' --column zip=text
      format-bench convert my.parquet my.csv --as csv --allow-loss day
      format-bench convert my.csv my.copy --as-recommended results/20261128T110918Z-host
    """
    read = read_options(options)
    with errors_told():
        from format_bench.api.convert import convert as converted
        from format_bench.progress import watching

        try:
            with watching() as watcher:
                copy = converted(**options, options=read, watcher=watcher)
        except KeyboardInterrupt:
            click.echo(f"stopped; {options['out']} was not written", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        for line in _told(copy):
            click.echo(line)


def _told(copy: Converted) -> list[str]:
    from format_bench.understood import warned
    from reports.analysis.units import MEGABYTES, SECONDS

    read = ", ".join(f"{subject} {text}" for subject, text in copy.understood.items() if subject != "kind")
    lines = [
        f"{copy.out}: {copy.rows:,} rows, {len(copy.columns):,} columns, {copy.variant}",
        f"  read      {copy.data.name}: {copy.understood['kind']}{f', {read}' if read else ''}",
        f"  size      {MEGABYTES.text(copy.input_bytes)} MB before, {MEGABYTES.text(copy.stored_bytes)} MB now",
        f"  time      {SECONDS.text(copy.store_ns)} s to read and store, {SECONDS.text(copy.verify_ns)} s to verify",
        f"  verified  {'all values are equal' if not copy.losses else 'equal but for:'}",
        *(f"            {name!r}: {change}" for name, change in copy.losses.items()),
    ]
    return [*lines, *(line for remark in copy.remarks for line in warned(remark))]
