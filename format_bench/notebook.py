"""For notebooks and programs: `from format_bench import run, recommend`, with the words of the command line.

    results = run("tabular", rows=20_000, formats="parquet|feather", quick=True)
    answer = recommend(data="my.csv", prefer="read=3,size=1")

Each keyword is the command line's option of that name, `_` for `-`: a text or number is its value, a list repeats it,
True is a flag. Options are parsed and checked by the command line itself, so there is one list of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_runner.results.records import read_run
from format_bench import cli
from reports.analysis.frame import frame

if TYPE_CHECKING:
    import pandas as pd

    from reports.text.recommendation import Answer

_FLAG = "--"


def run(*suites: str, **options: Any) -> pd.DataFrame:
    """Measure one or more suites; the figures as a DataFrame (see reports.analysis.frame.frame), whose
    `attrs["folder"]` is the result folder.

    Raises ValueError for a wrong request, with the command line's words, and the errors of the parts otherwise. A cell
    that fails is a row with its reason.
    """
    with _value_errors():
        context = _parsed(cli.run, [*suites, *_words(options)])
        folder = cli.measure_run(context.params)
    found = frame(read_run(folder))
    found.attrs["folder"] = str(folder)
    return found


def recommend(**options: Any) -> Answer:
    """Say which variant to use for some data: an Answer, whose `found.ranked` is best first and whose `save` and `read`
    are the lines of Python to use. `stored=` names a stored run, as `--from` does. Raises as `run` does."""
    if "stored" in options:
        options["from"] = options.pop("stored")
    with _value_errors():
        context = _parsed(cli.recommend, _words(options))
        return cli.answered(context.params)


def _parsed(command: click.Command, words: list[str]) -> click.Context:
    # Below the program's own context, whose settings a command keeps from its first use on.
    return command.make_context(command.name, words, parent=click.Context(cli.cli, **cli.cli.context_settings))


def _words(options: Mapping[str, Any]) -> list[str]:
    """Keywords as the words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        flag = _FLAG + name.replace("_", "-")
        for each in value if isinstance(value, list | tuple) else (value,):
            if each is True:
                words.append(flag)
            elif each is not None and each is not False:
                words += [flag, _text(each)]
    return words


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number}" for name, number in value.items())
    return str(value) if not isinstance(value, Path) else str(value.expanduser())


@contextmanager
def _value_errors() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        raise ValueError(error.format_message()) from None
