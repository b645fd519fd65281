"""Build the command that repeats one measurement of a run: one variant on one data set under the same conditions.

The command is built from the stored records alone, without the code that plans runs. A test checks that every such
command is valid.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from bench_runner.conditions import CONDITIONS, Conditions
from bench_runner.data_kinds import kind_of_target
from bench_runner.results.information import READ, SAVE, RunInfo
from bench_runner.results.records import Run
from bench_runner.variants import Variant
from reports.analysis.engines import is_about_calls
from reports.analysis.tables import Row, Table

PROGRAM = "format-bench run"
_CODECS = "codecs"


def command_text(command: Sequence[str]) -> str:
    """Return the recorded command of a run, quoted for a shell. A call from Python is recorded as one string, which is
    returned unchanged."""
    return shlex.join(command) if len(command) > 1 else "".join(command)


def repeating_command(run: Run, table: Table, row: Row) -> str:
    """Return the shell command that repeats the measurements of a row, with as many rounds as were counted.

    Raw I/O is always measured together with another variant. Its command therefore names the table's first other
    variant.
    """
    words = [table.suite, "--datasets", _spelled(table.dataset)]
    variant = row.variant
    if variant.is_raw_io:
        variant = next((other.variant for other in table.rows if not other.variant.is_raw_io), variant)
    words += ["--formats", _spelled(_planned(variant)), "--rows", str(table.data_rows)]
    words += ["--rounds", str(max((1, *row.rounds)))]
    words += _operations(row)
    words += _conditions(table)
    if not table.conditions.network and variant.engine == "near-storage":
        # The network is named, because the suite measures several by default.
        words += ["--network", "one-process"]
    words += _request(run.info, table)
    if run.info.isolate == "spawn":
        words += ["--isolate", "spawn"]
    return f"{PROGRAM} {shlex.join(words)}"


def _operations(row: Row) -> Iterator[str]:
    """Yield options that select the row's operations. Yield nothing if the row has only save and read. A save is always
    measured, so no option names it."""
    if set(row.cells) - {SAVE, READ}:
        for operation in row.cells:
            if operation != SAVE:
                yield from ("--operations", operation)


def _spelled(name: str) -> str:
    """Return a data set or variant as an argument for the command line. A name without settings becomes a pattern that
    matches only this name."""
    return name if "[" in name else _alone(name)


def _alone(name: str) -> str:
    """Return a pattern that matches only this name, without unnecessary escapes."""
    return f"^{re.escape(name)}$".replace("\\-", "-")


def _planned(variant: Variant) -> Variant:
    """Return the variant as a user selects it. The runner adds nulls=numpy to variants that refuse missing values, so
    this setting is removed."""
    return variant.without("nulls") if variant.settings.get("nulls") == "numpy" else variant


def _conditions(table: Table) -> Iterator[str]:
    usual = Conditions()
    of_tables = kind_of_target(table.conditions.target).has_columns
    for condition in CONDITIONS:
        value = getattr(table.conditions, condition.name)
        # The track is always named, because suites measure several by default. The suite about calls also measures two
        # thread counts by default.
        named = condition.name == "track" or (condition.name == "threads" and is_about_calls(table))
        if (named or value != getattr(usual, condition.name)) and (of_tables or not condition.of_tables):
            asked = condition.repeated(value)
            yield from () if asked is None else (condition.option, asked)


def _request(info: RunInfo, table: Table) -> Iterator[str]:
    """Yield the options of the run that the new run needs in order to have this variant and this data set."""
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
