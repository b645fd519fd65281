"""`format-bench store put|query|delete|check|repair|tables`: the client of near storage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from format_bench.commands.near_storage_access import (
    CATALOG,
    PORT,
    TOKEN,
    client_token,
    near_storage_errors,
    trusted_roots,
)
from format_bench.errors import RequestError
from format_bench.options import grouped
from format_bench.terminal import FAILED
from libraries.near_storage.words import number_of

if TYPE_CHECKING:
    import pyarrow as pa

    from libraries.near_storage.client.connection import Client
    from libraries.near_storage.serving.protocol import Finding

_PATH = click.Path(path_type=Path)
REACHING = grouped(
    click.option(
        "--catalog",
        metavar="URI",
        envvar=CATALOG,
        default=f"grpc://127.0.0.1:{PORT}",
        show_default=True,
        help=f"Address of the catalog, or the environment variable {CATALOG}.",
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        type=_PATH,
        help=f"The file 'token' from the catalog's folder. [default: the environment variable {TOKEN}]",
    ),
    click.option("--tls-roots", metavar="FILE", type=_PATH, help="Root certificates to trust, PEM."),
)


_ROWS_AT_ONCE = 1_000
_LEFT = {
    "gone": "without an intact replica on a running node: start the nodes that held it, or put the table again",
    "few": "with too few replicas: start more nodes, then run 'store repair'",
}
"""Maps each kind of finding (problem of a table) that `store repair` cannot repair to a text. The text says what is
wrong with the partitions, and what to do."""


@click.group()
def store() -> None:
    """Store, query and maintain tables in near storage.

    A catalog and nodes must be running, which `serve` starts. libraries/near_storage/docs/near-storage.md explains
    them.
    """


@store.command()
@click.argument("table")
@click.argument("source", nargs=-1, required=True, type=_PATH)
@click.option(
    "--rows-per-partition",
    metavar="N",
    type=click.IntRange(min=1),
    help="Rewrite the files with N rows each. [default: keep them as they are]",
)
@REACHING
def put(table: str, source: tuple[Path, ...], rows_per_partition: int | None, **reaching: Any) -> None:
    """Store Parquet files as a new version of TABLE.

    SOURCE is a Parquet file or a folder of them. Each file is copied byte for byte as one partition. Versions are
    numbered over all tables of the catalog.
    """
    with near_storage_errors(), _connected(reaching) as client:
        version = client.put(table, list(source), rows_per_partition, _progress())
        click.echo(f"{table}: version {version}")


@store.command()
@click.argument("sql")
@click.option(
    "--way", type=click.Choice(["v1", "v2", "all"]), help="How the table is read. [default: the catalog chooses]"
)
@click.option("--explain", is_flag=True, help="Show how the query would be answered, and read nothing.")
@click.option(
    "--out", metavar="FILE", type=_PATH, help="Write the answer to a Parquet file. [default: CSV to standard output]"
)
@REACHING
def query(sql: str, way: Any, explain: bool, out: Path | None, **reaching: Any) -> None:
    """Answer a SELECT query.

    Supported: columns or min, max, sum, count, avg; WHERE; GROUP BY; LIMIT.
    """
    with near_storage_errors(), ExitStack() as stack:
        if out is not None and not explain:
            _check_out(out)
        client = stack.enter_context(_connected(reaching))
        if explain:
            click.echo(str(client.explain(sql, way)))
            return
        _give(client.query(sql, way), out)


@store.command()
@REACHING
def tables(**reaching: Any) -> None:
    """List tables with their version, rows, partitions and bytes."""
    with near_storage_errors(), _connected(reaching) as client:
        for each in client.tables():
            click.echo(
                f"{each.table}  version {each.version}  {number_of(each.rows, 'row')}  "
                f"{number_of(each.partitions, 'partition')}  "
                f"{each.stored_bytes / 1e6:,.1f} MB"
            )


@store.command()
@click.argument("table")
@REACHING
def delete(table: str, **reaching: Any) -> None:
    """Delete TABLE. Its files are removed when no reader needs them any more."""
    with near_storage_errors(), _connected(reaching) as client:
        client.delete(table)
        click.echo(f"{table}: deleted")


@store.command()
@click.option("--verify", is_flag=True, help="Read every stored byte.")
@REACHING
def check(verify: bool, **reaching: Any) -> int:
    """Compare the files on the nodes with the catalog. Exit code 1 if something is wrong."""
    with near_storage_errors(), _connected(reaching) as client:
        found = client.check(verify)
        for finding in found.findings:
            click.echo(f"{finding.kind}: {finding.text}")
        if not found.findings:
            click.echo("all is well")
            return 0
        repair = "'store repair --verify'" if verify else "'store repair'"
        click.echo(f"{number_of(len(found.findings), 'finding')}; {repair} has {number_of(found.steps, 'step')} to do")
        _tell_left([each for each in found.findings if not each.mendable], f"{repair} leaves")
        return FAILED


@store.command()
@click.option("--verify", is_flag=True, help="Read every stored byte.")
@click.option("--forget", multiple=True, metavar="NODE", help="Remove a node that is gone for good (repeatable).")
@REACHING
def repair(verify: bool, forget: tuple[str, ...], **reaching: Any) -> int:
    """Restore lost replicas and remove orphaned files. Exit code 1 if a step failed, or something is left."""
    with near_storage_errors(), _connected(reaching) as client:
        for name in forget:
            client.forget(name)
            click.echo(f"{name}: forgotten")
        done = client.repair(verify)
        for failed in done.failed:
            click.echo(f"failed: {failed}", err=True)
        click.echo(
            f"{number_of(len(done.findings), 'finding')}: {done.copied} copied, {done.recorded} recorded, "
            f"{done.removed} removed, {len(done.failed)} failed"
        )
        left = [each for each in done.findings if not each.mendable]
        _tell_left(left, "left")
        return FAILED if done.failed or left else 0


def _tell_left(left: Sequence[Finding], label: str) -> None:
    """Print for each table what `store repair` cannot repair, and what to do about it."""
    silent = [each.node for each in left if each.kind == "silent" and each.node is not None]
    partitions = {
        (table, kind): sum(table in each.tables for each in left if each.kind == kind)
        for table in sorted({table for each in left for table in each.tables})
        for kind in _LEFT
    }
    for (table, kind), count in partitions.items():
        if count:
            click.echo(f"{label}: {table}: {number_of(count, 'partition')} {_LEFT[kind]}", err=True)
    if silent:
        click.echo(
            f"{label}: no answer from {', '.join(silent)}\n"
            "  start nodes that are down; for a node that is gone for good: 'store repair --forget NODE'",
            err=True,
        )


def _connected(reaching: dict[str, Any]) -> Client:
    from libraries.near_storage.client.connection import connect

    trusted = trusted_roots(reaching["tls_roots"])
    return connect(reaching["catalog"], client_token(reaching["token_file"]), trusted)


def _progress() -> Callable[[int, int | None], None] | None:
    """Return a function that prints the number of bytes stored so far; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return None

    def told(stored_bytes: int, of_bytes: int | None) -> None:
        whole = f" of {of_bytes / 1e6:,.1f}" if of_bytes else ""
        click.echo(f"\r{stored_bytes / 1e6:,.1f}{whole} MB stored", nl=stored_bytes == of_bytes, err=True)

    return told


def _check_out(out: Path) -> None:
    """Raise RequestError if no file can be written under this name."""
    if out.exists() and not out.is_file():
        raise RequestError(parameter="out", given=str(out), allowed="a file or a new path")
    if not out.parent.is_dir():
        raise RequestError(
            f"`out`: the folder {out.parent} does not exist.",
            "Create it, or name a file in another folder.",
            parameter="out",
            given=str(out),
        )
    if not os.access(out.parent, os.W_OK):
        raise RequestError(
            f"`out`: the folder {out.parent} is not writable.",
            "Name a file in another folder.",
            parameter="out",
            given=str(out),
        )


def _give(answer: pa.Table, out: Path | None) -> None:
    """Write the answer to a file, or as CSV to standard output. Raises RequestError if CSV cannot hold a column."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if out is not None:
        _check_out(out)
        # Write to a temporary file: if writing fails, pyarrow removes the file, and `out` may be an older answer.
        part = out.with_name(f".{out.name}.part")
        try:
            parquet.write_table(answer, part)
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
        click.echo(f"{number_of(answer.num_rows, 'row')} in {out}", err=True)
        return
    from libraries.near_storage.reading import working_types

    try:
        # pyarrow cannot write string views as CSV.
        with csv.CSVWriter(sys.stdout.buffer, working_types.working_schema(answer.schema)) as writer:
            for batch in answer.to_batches(max_chunksize=_ROWS_AT_ONCE):
                # Ctrl-C takes effect between two batches.
                writer.write_batch(working_types.working(batch))
    except pa.ArrowInvalid as error:
        raise RequestError(
            f"The answer cannot be printed as CSV ({error}).", "Use `out` to write the answer to a Parquet file."
        ) from None
