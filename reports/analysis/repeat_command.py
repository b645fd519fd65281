"""The command that measures one variant on one data set again, as the figures of a run were measured.

Only words: they are made from what the records say, and must not know how a request is planned. A test plans every one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from bench_runner.conditions import CONDITIONS, Conditions
from bench_runner.data_kinds import kind_of_target
from bench_runner.results.information import READ, SAVE, RunInfo
from bench_runner.results.records import Run
from bench_runner.variants import Variant
from reports.analysis.engines import is_about_calls
from reports.analysis.tables import Row, Table

PROGRAM = "python main.py run"
_CODECS = "codecs"


def repeating_command(run: Run, table: Table, row: Row) -> str:
    """The command, for a shell, with as many rounds as were counted. Raw I/O is measured beside any variant, so it is
    repeated with the first other one."""
    words = [table.suite, "--datasets", _spelled(table.dataset)]
    variant = row.variant
    if variant.is_raw_io:
        variant = next((other.variant for other in table.rows if not other.variant.is_raw_io), variant)
    words += ["--formats", _spelled(_planned(variant)), "--rows", str(table.data_rows)]
    words += ["--rounds", str(max((1, *row.rounds)))]
    words += _operations(row)
    words += _conditions(table)
    if not table.conditions.network and variant.engine == "near-storage":
        # The suite has networks of its own.
        words += ["--network", "one-process"]
    words += _request(run.info, table)
    if run.info.isolate == "spawn":
        words += ["--isolate", "spawn"]
    return f"{PROGRAM} {shlex.join(words)}"


def _operations(row: Row) -> Iterator[str]:
    """Those of the row, where they are others than every suite has. A save comes by itself."""
    if set(row.cells) - {SAVE, READ}:
        for operation in row.cells:
            if operation != SAVE:
                yield from ("--operations", operation)


def _spelled(name: str) -> str:
    """A data set or variant with its settings names itself; of a plain name, only the one that is called so."""
    return name if "[" in name else _alone(name)


def _alone(name: str) -> str:
    """A pattern that this name matches, and no other; without the escapes that it does not need."""
    return f"^{re.escape(name)}$".replace("\\-", "-")


def _planned(variant: Variant) -> Variant:
    """As the plan has it: nulls=numpy is what the runner adds to a variant that refuses missing values."""
    return variant.without("nulls") if variant.settings.get("nulls") == "numpy" else variant


def _conditions(table: Table) -> Iterator[str]:
    usual = Conditions()
    of_tables = kind_of_target(table.conditions.target).has_columns
    for condition in CONDITIONS:
        value = getattr(table.conditions, condition.name)
        # The suite defaults to several tracks, and the suite about calls to both numbers of threads.
        named = condition.name == "track" or (condition.name == "threads" and is_about_calls(table))
        if (named or value != getattr(usual, condition.name)) and (of_tables or not condition.of_tables):
            asked = condition.repeated(value)
            yield from () if asked is None else (condition.option, asked)


def _request(info: RunInfo, table: Table) -> Iterator[str]:
    """What decided which variants and which data there were to choose from."""
    request = info.request
    if table.conditions.track == _CODECS:
        for option, values in (("codecs", request.codecs), ("levels", request.levels)):
            if values:
                yield from (f"--{option}", ",".join(map(str, values)))
    if table.dataset == "webface" and request.webface:
        yield from ("--webface", str(request.webface))
    users_own = table.dataset.name in kind_of_target(table.conditions.target).own_datasets
    if users_own and request.data_path:
        yield from ("--data", request.data_path, *request.options.words())
