"""`format-bench ask`: answer SQL about a JSON Lines file or a document store."""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from format_bench.terminal import INTERRUPTED, console, errors_told

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 100
"""Maximum number of rows that are printed as a table."""
_ROWS_AT_ONCE = 10_000


@click.command()
@click.argument("data", metavar="PATH", type=click.Path(path_type=Path))
@click.argument("sql", metavar="SQL")
@click.option(
    "--key",
    metavar="FIELD",
    help="Identify documents by FIELD; a later line replaces an earlier one with the same value. [default: the number "
    "of the line]",
)
@click.option("--explain", is_flag=True, help="Show how the query would be answered, and do not answer it.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print all rows, each as a line of JSON. NaN and infinity, which JSON lacks, become null.",
)
def ask(data: Path, sql: str, key: str | None, explain: bool, as_json: bool) -> None:
    """Answer SQL about a JSON Lines file, or about a folder that the document store wrote.

    The table is docs, and its columns are paths of fields, such as commit.operation; _line is the number of the line. A
    field that a document lacks is NULL, and values of different types never match. The file may be compressed
    (.jsonl.gz, .bz2, .xz, .zst, .zip). It is read into a temporary store (in TMPDIR), which is removed at the end.

    \b
    Examples:
      format-bench ask events.jsonl 'SELECT kind, count(*) FROM docs GROUP BY kind'
      format-bench ask events.jsonl.gz "SELECT user.name FROM docs WHERE size > 10 LIMIT 5"
      format-bench ask events.jsonl 'SELECT * FROM docs LIMIT 3' --json
    """
    with errors_told():
        from data_generator.imported.refusal import printable
        from format_bench.api.ask import ask as asked
        from format_bench.progress import watching

        try:
            with watching() as watcher, warnings.catch_warnings(record=True) as noted:
                warnings.simplefilter("always", UserWarning)
                watcher.stage("read")
                answer = asked(
                    data, sql, key=key, explain=explain, on_lines=lambda seen: watcher.step(f"{seen:,} lines", None)
                )
            for each in noted:
                click.echo(f"note: {printable(each.message)}", err=True)
            if explain:
                click.echo(str(answer))
            elif as_json:
                _print_json(answer)
            else:
                _print_table(answer)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


def _print_json(answer: pa.Table) -> None:
    for batch in answer.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            try:
                text = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_as_text)
            except ValueError:
                text = json.dumps(_finite(row), ensure_ascii=False, allow_nan=False, default=_as_text)
            click.echo(text)
    sys.stdout.flush()


def _finite(value: object) -> object:
    """Return a value with null for infinity and NaN, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _print_table(answer: pa.Table) -> None:
    from format_bench.row_table import MOST_COLUMNS, show_rows

    show_rows(answer.slice(0, MOST_ROWS), console())
    if answer.num_rows == 0:
        click.echo("no rows", err=True)
    hidden = []
    if answer.num_rows > MOST_ROWS:
        hidden.append(f"{answer.num_rows - MOST_ROWS:,} more rows")
    if answer.num_columns > MOST_COLUMNS:
        hidden.append(f"{answer.num_columns - MOST_COLUMNS:,} more columns")
    if hidden:
        click.echo(f"not shown: {' and '.join(hidden)}; --json prints all", err=True)
