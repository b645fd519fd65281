"""Command-line options that several commands share, in groups. Each group is a decorator for a command.

This module has the names and help texts. format_bench.parameter_types parses the values.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from data_generator.imported.read_options import TYPES, ReadOptions
from format_bench.parameter_types import COLUMN_TYPE, DURATION, LEVELS, NAMES, OVER, PERCENT

Command = TypeVar("Command", bound=Callable[..., Any])


def grouped(*several: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine several options into one decorator that keeps their order in the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(several):
            command = option(command)
        return command

    return decorate


WHICH = grouped(
    click.option(
        "-f",
        "--formats",
        metavar="REGEX",
        multiple=True,
        help="Measure only variants whose name matches: 'parquet' (every Parquet variant of the suite), 'codec=zstd', "
        "or a full name, whose brackets need no escape. Several: 'parquet,csv' or 'parquet|csv' (repeatable). "
        "[default: all of the suite]",
    ),
    click.option(
        "--formats-not", metavar="REGEX", multiple=True, help="Skip variants whose name matches (repeatable)."
    ),
    click.option(
        "-d",
        "--datasets",
        metavar="REGEX",
        multiple=True,
        help="Built-in data sets to measure, or one with parameters: 'synthetic[int=5,str=1]'. 'list datasets' shows "
        "data sets and parameters (repeatable). [default: the suite's]",
    ),
    click.option(
        "--operations",
        metavar="REGEX",
        multiple=True,
        help="Operations to measure; a save is always followed by a read that verifies it (repeatable). "
        "[default: the suite's]",
    ),
    click.option(
        "--webface",
        metavar="[PATH]",
        is_flag=False,
        flag_value="",
        help="Add the data set webface: annotations of faces, from your HDF5 file PATH or else generated.",
    ),
    click.option(
        "--data",
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="Your own data: a table (CSV, JSON Lines, Parquet, Arrow, ORC, Excel, Avro, or a folder of Parquet files; "
        "large tables are sampled), images for the suite image, JSON Lines for the suite documents.",
    ),
    click.option(
        "--key",
        metavar="FIELD",
        help="Field that is unique in each of your own documents. [default: id, else the line number]",
    ),
    click.option(
        "--rows",
        metavar="N",
        type=click.IntRange(min=1),
        help="Number of rows of each data set, or of the sample of your own table. [default: 1,000,000 for most data "
        "sets; for your own table, at most 1,000,000]",
    ),
    click.option(
        "--over",
        type=OVER,
        metavar="TRAIT[=VALUE,...]",
        help="Vary one property (trait) of the data or of its use, and show where the best format changes: "
        "nulls=0,0.5,0.9 measures tables with these shares of missing values. 'list suites' shows the traits, and the "
        "values used if you omit VALUE.",
    ),
    click.option(
        "--track",
        "tracks",
        type=click.Choice(["plain", "default", "equal"]),
        multiple=True,
        help="Compression of the variants: plain is none, default is each library's default, equal is zstd level 1 "
        "(repeatable). [default: the suite's]",
    ),
    click.option(
        "--codecs",
        type=NAMES,
        default="",
        metavar="NAME,...",
        help="Codecs for the suite compression, e.g. 'zstd,gzip' or 'all'. [default: the suite's]",
    ),
    click.option(
        "--levels",
        type=LEVELS,
        default="",
        metavar="N,...",
        help="Compression levels for the suite compression, e.g. '1,3,9'; unsupported levels are refused. [default: 1]",
    ),
)
READING = grouped(
    click.option(
        "--column",
        "columns",
        metavar="NAME=TYPE",
        multiple=True,
        type=COLUMN_TYPE,
        help=f"Type of a column of your CSV, JSON or Excel file: {', '.join(TYPES)} (repeatable). "
        "[default: found in the file]",
    ),
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        help="Field delimiter of your CSV file; 'tab' for a tab. [default: found in the file]",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="Decimal separator of your CSV file; with a comma, 1.234,5 is 1234.5.",
    ),
    click.option(
        "--sheet",
        metavar="NAME",
        help="Sheet of your workbook, by name or number. [default: the first visible one with rows]",
    ),
    click.option("--encoding", metavar="NAME", help="Encoding of your CSV or JSON file, e.g. cp1252. [default: UTF-8]"),
    click.option(
        "--no-header",
        is_flag=True,
        help="Treat the first row as values; columns are then called '0', '1', ... (CSV, Excel).",
    ),
    click.option("--day-first", is_flag=True, help="Read 31.12.2024 and 31/12/2024 in your CSV file as dates."),
)
"""Options for reading the user's own table. `read_options` converts them to a ReadOptions object."""


def read_options(given: dict[str, Any]) -> ReadOptions:
    """Remove the options of `READING` from `given` and return them as a ReadOptions object."""
    return ReadOptions(
        columns=dict(given.pop("columns")),
        delimiter=_unescaped(given.pop("delimiter")),
        decimal=given.pop("decimal"),
        sheet=given.pop("sheet"),
        encoding=given.pop("encoding"),
        header=not given.pop("no_header"),
        day_first=given.pop("day_first"),
    )


def _unescaped(delimiter: str | None) -> str | None:
    r"""Return a tab for 'tab' and for '\t' typed as two characters, because a tab is hard to type in a shell."""
    return "\t" if delimiter in ("\\t", "tab") else delimiter


def _under(threads: str, target: str) -> Callable[[Command], Command]:
    """Return the options of conditions. `threads` and `target` say what their defaults are."""
    return grouped(
        click.option(
            "--cache",
            type=click.Choice(["warm", "cold"]),
            default="warm",
            show_default=True,
            help="warm: files are still in memory, because they were just written or read. cold: they come from the "
            "disk, as at the first read of a day.",
        ),
        click.option(
            "--threads",
            type=click.Choice(["default", "1"]),
            help=f"Each library's default number of threads, or one thread on one core. [default: {threads}]",
        ),
        click.option(
            "--target",
            type=click.Choice(["pandas", "arrow"]),
            help=f"Type of table in memory that is saved, and that reading returns. [default: {target}]",
        ),
        click.option(
            "--strings",
            type=click.Choice(["str", "object"]),
            default="str",
            show_default=True,
            help="pandas dtype of text: str (the default of pandas 3) or object (the default of pandas 2).",
        ),
        click.option(
            "--work-dir",
            "work_dirs",
            metavar="PATH",
            multiple=True,
            help="Folder in which files are written and read, so its disk is measured. If you name several, each is "
            "measured (repeatable). [default: the result folder]",
        ),
    )


# The names are written out, because loading the suites would double the time of --help. A test compares them.
UNDER = _under(
    "default; both in the suite engines",
    "pandas; arrow in the suites access, wide, encodings, writing, sweep, near-storage and training",
)
UNDER_RECOMMEND = _under("default", "pandas")
BETWEEN = grouped(
    click.option(
        "--network",
        "networks",
        metavar="NAME",
        multiple=True,
        help="For the suite near-storage: the network between client and service: one-process (no network), loopback, "
        "or a rate such as 100mbit, from 1mbit to 2500mbit (repeatable). [default: several]",
    ),
    click.option(
        "--service",
        type=click.Choice(["warm", "fresh"]),
        default="warm",
        show_default=True,
        help="For the suite near-storage: a service that answered before, or one that is restarted each time.",
    ),
)
HOW = grouped(
    click.option(
        "--rounds",
        metavar="N",
        type=click.IntRange(min=1),
        help="How often everything is measured. [default: depends on the time of one operation. Up to 1 s: 9, but only "
        "7 if these give ±5 %. Up to 10 s: 7. Up to 60 s: 3. Longer: 1]",
    ),
    click.option(
        "--quick",
        is_flag=True,
        help="Measure a part of the suite once, on fewer rows: about three minutes on two cores. 'list suites' "
        "shows which part. Formats, data sets or operations that you name are all measured, which may take longer.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=DURATION,
        help="Time for the whole run, e.g. 10m. Every operation is measured at least once, even if this takes longer.",
    ),
    click.option(
        "--timeout", "timeout_s", type=DURATION, default="600s", show_default=True, help="Time limit for one operation."
    ),
    click.option(
        "--seed",
        metavar="N",
        type=click.IntRange(min=0),
        help="Seed of the order of measurements. [default: random, recorded in the run]",
    ),
    click.option(
        "--isolate",
        type=click.Choice(["forkserver", "spawn"]),
        default="forkserver",
        show_default=True,
        help="How each measurement gets a fresh process. forkserver: forked from a prepared one. spawn: started anew, "
        "which takes longer and is needed only for libraries that fail after a fork.",
    ),
    click.option(
        "--no-fidelity",
        is_flag=True,
        help="Skip the extra test of which kinds of column a format changes (it stores a small table for each kind). "
        "Saved data are verified in any case.",
    ),
    click.option(
        "--fresh",
        is_flag=True,
        help="Use no results of earlier runs on this machine, such as import times; measure them again.",
    ),
)
WHERE = grouped(
    click.option(
        "--out",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Result folder. [default: results/<time>-<machine>]",
    ),
    click.option("--resume", is_flag=True, help="Measure what is missing in the run in --out."),
    click.option("--report", is_flag=True, help="Also write a PDF into the result folder."),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Measure on the hosts of a dask.distributed cluster: local:1 (one worker on this machine), ssh:FILE (one "
        "host per line), or the address of a scheduler. Each host gets a separate result folder below --out.",
    ),
    click.option("--insecure", is_flag=True, help="Accept a cluster that is reached by a network without TLS."),
    click.option("--machine", metavar="NAME", help="Name of this machine in all records. [default: the host name]"),
    click.option(
        "--list",
        "list_only",
        is_flag=True,
        help="Show what would be measured and how long it would take, and stop. Without SUITE: of all suites.",
    ),
)
FAIL_ABOVE = click.option(
    "--fail-above",
    "least_change",
    type=PERCENT,
    default="5%",
    show_default=True,
    help="Report only changes above this percentage.",
)
ANYWAY = click.option("--anyway", is_flag=True, help="Compare even runs of different machines or data.")
FORM = grouped(
    click.option("--markdown", "form", flag_value="markdown", help="Print Markdown, for a comment on a pull request."),
    click.option("--json", "form", flag_value="json", help="Print JSON with all figures."),
)
