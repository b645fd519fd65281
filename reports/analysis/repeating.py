"""The command that measures one variant on one data set again, as the figures of a run were measured.

Only words: they are made from what the records say, and must not know how a request is planned. A test plans every one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from bench_runner.data_kinds import kind_of_target
from bench_runner.results.information import READ, SAVE, RequestInfo
from bench_runner.results.records import Conditions, Run
from bench_runner.variants import Variant
from reports.analysis.engines import is_about_calls
from reports.analysis.tables import Row, Table

PROGRAM = "python main.py run"
_TRACKS = ("plain", "default", "equal")
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
    words += _request(run.info.request, table)
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
    usual, conditions = Conditions(), table.conditions
    of_tables = kind_of_target(conditions.target).has_columns
    if of_tables and conditions.track in _TRACKS:
        yield from ("--track", conditions.track)
    if conditions.cache != usual.cache:
        yield from ("--cache", conditions.cache.partition(" ")[0])
    # The suite about calls has both conditions of its own.
    if conditions.threads != usual.threads or is_about_calls(table):
        yield from ("--threads", conditions.threads)
    if of_tables and conditions.target != usual.target:
        yield from ("--target", conditions.target)
    if of_tables and conditions.strings != usual.strings:
        yield from ("--strings", conditions.strings)
    if conditions.work_dir != usual.work_dir:
        yield from ("--work-dir", conditions.work_dir)
    if conditions.network != usual.network:
        yield from ("--network", conditions.network)
    if conditions.service == "fresh":
        yield from ("--service", conditions.service)


def _request(request: RequestInfo, table: Table) -> Iterator[str]:
    """What decided which variants and which data there were to choose from."""
    if table.conditions.track == _CODECS:
        for option, values in (("codecs", request.codecs), ("levels", request.levels)):
            if values:
                yield from (f"--{option}", ",".join(map(str, values)))
    if table.dataset == "webface" and request.webface:
        yield from ("--webface", request.webface)
    users_own = table.dataset.name in kind_of_target(table.conditions.target).own_datasets
    if users_own and request.data_path:
        yield from ("--data", request.data_path, *request.options.words())
