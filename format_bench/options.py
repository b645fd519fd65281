"""Options that several commands have, in groups: each is a decorator, and its values are the API's keywords.

What an option is called and says stands here; how its value is read in format_bench.parameter_types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from bench_runner.suites import SUITES
from data_generator.imported.read_options import TYPES, ReadOptions
from format_bench.parameter_types import COLUMN_TYPE, DURATION, LEVELS, NAMES, OVER, PERCENT

Command = TypeVar("Command", bound=Callable[..., Any])


def grouped(*several: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(several):
            command = option(command)
        return command

    return decorate


def _listed(names: Iterable[str]) -> str:
    """'access, wide and writing'."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


WHICH = grouped(
    click.option(
        "-f",
        "--formats",
        metavar="REGEX",
        multiple=True,
        help="Keep these: names or regular expressions, e.g. 'parquet,^csv$,codec=zstd' (repeatable).",
    ),
    click.option(
        "--formats-not", metavar="REGEX", multiple=True, help="Drop variants whose name matches (repeatable)."
    ),
    click.option(
        "-d",
        "--datasets",
        metavar="REGEX",
        multiple=True,
        help="Keep data sets whose name matches; name one on request, e.g. webface, in full; or spell one: "
        "'synthetic[int=5,str=1]' (repeatable).",
    ),
    click.option(
        "--operations",
        metavar="REGEX",
        multiple=True,
        help="Keep operations whose name matches; a save always comes with a read, which verifies it (repeatable).",
    ),
    click.option(
        "--webface",
        metavar="[PATH]",
        is_flag=False,
        flag_value="",
        help="Add the data set webface: from this HDF5 file, or without a path a generated one.",
    ),
    click.option(
        "--data",
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="Your own data instead of ours: a table (CSV, JSON Lines, Parquet, Arrow, ORC, Excel, Avro, a folder of "
        "Parquet files; of a large one a sample), or, for the suite image, images (in folders by class, in Parquet, or "
        "saved by the datasets library), or, for the suite documents, JSON Lines.",
    ),
    click.option(
        "--key",
        metavar="FIELD",
        help="Of your own documents, the field that each has another value of (default: id, or else their number).",
    ),
    click.option(
        "--rows",
        type=click.IntRange(min=1),
        help="Rows of each data set, or of the sample of your own table (default: its own, 1,000,000 for most).",
    ),
    click.option(
        "--over",
        type=OVER,
        metavar="TRAIT[=VALUE,...]",
        help="Vary one trait while all else stays, and tell where the winner changes: distinct, run_length, nulls, "
        "width, columns, rows, rows_taken, columns_read, selectivity; or a parameter of the data set that --datasets "
        "names. 'list suites' has the usual values.",
    ),
    click.option(
        "--track",
        "tracks",
        type=click.Choice(["plain", "default", "equal"]),
        multiple=True,
        help="No codec, the library default, or zstd level 1 for all that have it (default: the suite's; repeatable).",
    ),
    click.option(
        "--codecs",
        type=NAMES,
        default="",
        metavar="NAME,...",
        help="For the suite compression: codecs of every format that has them, e.g. 'zstd,gzip', or 'all'.",
    ),
    click.option(
        "--levels",
        type=LEVELS,
        default="",
        metavar="N,...",
        help="For the suite compression: levels, e.g. '1,3,9' (default: 1); one that a codec does not take is refused.",
    ),
)
READING = grouped(
    click.option(
        "--column",
        "columns",
        metavar="NAME=TYPE",
        multiple=True,
        type=COLUMN_TYPE,
        help=f"Type of a column of your own table: {', '.join(TYPES)} (repeatable).",
    ),
    click.option(
        "--delimiter", metavar="CHARACTER", help="Character between the fields of your CSV file [default: found]."
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="Decimal point of your numbers.",
    ),
    click.option(
        "--sheet", metavar="NAME", help="Name or number of a sheet of your workbook [default: the first table]."
    ),
    click.option("--encoding", metavar="NAME", help="Encoding of your text file, e.g. cp1252 [default: UTF-8]."),
    click.option("--no-header", is_flag=True, help="The first row of your table holds values, not names of columns."),
    click.option("--day-first", is_flag=True, help="Dates have the day first: 31.12.2024, 31/12/2024."),
)
"""Options for reading the user's own table; `read_options` makes one value of them."""


def read_options(given: dict[str, Any]) -> ReadOptions:
    """Take the options of `READING` out of `given`, as one value."""
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
    """A tab is hard to type: 'tab' and a backslash with t stand for it."""
    return "\t" if delimiter in ("\\t", "tab") else delimiter


UNDER = grouped(
    click.option(
        "--cache",
        type=click.Choice(["warm", "cold"]),
        default="warm",
        show_default=True,
        help="Page cache before a read; cold evicts the stored copy, and proves it.",
    ),
    click.option(
        "--threads",
        type=click.Choice(["default", "1"]),
        help="The libraries' own choice, or one thread on one core (default: the suite's, which is the first but for "
        "engines, which has both).",
    ),
    click.option(
        "--target",
        type=click.Choice(["pandas", "arrow"]),
        help="What you hold and want back: a DataFrame or an Arrow table (default: the suite's, which is pandas but "
        f"for {_listed(suite.name for suite in SUITES.values() if suite.target == 'arrow')}).",
    ),
    click.option(
        "--strings",
        type=click.Choice(["str", "object"]),
        default="str",
        show_default=True,
        help="The pandas dtype of text: pandas 3's, or Python objects as in the thesis.",
    ),
    click.option(
        "--work-dir",
        "work_dirs",
        metavar="PATH",
        multiple=True,
        help="Where files are written and read (repeatable: each is a condition with its device; "
        "default: the result folder).",
    ),
)
BETWEEN = grouped(
    click.option(
        "--network",
        "networks",
        metavar="NAME",
        multiple=True,
        help="What lies between who asks and a copy that services have: one-process, loopback, or loopback behind a "
        "proxy that lets so much through, 1mbit to 2500mbit (repeatable; default: the suite's, which is one-process "
        "but for near-storage).",
    ),
    click.option(
        "--service",
        type=click.Choice(["warm", "fresh"]),
        default="warm",
        show_default=True,
        help="Services that have answered before, or that were started for the sample.",
    ),
)
HOW = grouped(
    click.option(
        "--rounds",
        type=click.IntRange(min=1),
        help="Rounds for every cell (default: 7; 3 for cells over 10 s, 1 over 60 s; a cell whose interval is narrow "
        "stops after 5).",
    ),
    click.option(
        "--quick",
        is_flag=True,
        help="One round of a part of each suite, on fewer rows, which ends within three minutes on two cores ('list "
        "suites' says what); what you name is measured all the same. Every report says so.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=DURATION,
        help="Time for all of it, e.g. 10m: cheap cells get more rounds, every cell gets one, however long that takes.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=DURATION,
        default="600s",
        show_default=True,
        help="Longest time for one operation.",
    ),
    click.option(
        "--seed", type=click.IntRange(min=0), help="Order of the rounds (default: random, stored in the run)."
    ),
    click.option(
        "--isolate",
        type=click.Choice(["forkserver", "spawn"]),
        default="forkserver",
        show_default=True,
        help="How fresh processes are made; spawn is slower and the reference.",
    ),
    click.option("--no-fidelity", is_flag=True, help="Leave out the round trips of every kind of column."),
    click.option(
        "--fresh",
        is_flag=True,
        help="Measure again what is kept from earlier runs on this machine: losses, imports, the memory probe.",
    ),
)
WHERE = grouped(
    click.option(
        "--out",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Result folder (default: results/<time>-<machine>).",
    ),
    click.option("--resume", is_flag=True, help="Measure what the run in --out lacks."),
    click.option("--report", is_flag=True, help="Leave a PDF in the result folder as well."),
    click.option("--machine", metavar="NAME", help="Stands in all records in place of this host's name."),
    click.option("--list", "list_only", is_flag=True, help="Print what would be measured (without SUITE: the suites)."),
)
FAIL_ABOVE = click.option(
    "--fail-above",
    "least_change",
    type=PERCENT,
    default="5%",
    show_default=True,
    help="Changes up to this are neither told nor failed on.",
)
ANYWAY = click.option("--anyway", is_flag=True, help="Compare runs of different machines or data all the same.")
FORM = grouped(
    click.option("--markdown", "form", flag_value="markdown", help="Print Markdown, for a comment on a pull request."),
    click.option("--json", "form", flag_value="json", help="Print JSON with every figure, for programs."),
)
