"""Check a request to convert a table, and convert it."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from adapters.contract import Native, TabularFormat
from bench_runner.clock import now_ns
from bench_runner.data_kinds import kind_of_target
from bench_runner.machine import linux
from bench_runner.results.records import Run
from bench_runner.run.watcher import Watcher
from bench_runner.run.work_folder import work_folders
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from data_generator.imported.tables import table_input
from format_bench.api.recommend import recommend
from format_bench.api.report import stored_runs
from format_bench.api.request import texts
from format_bench.api.stored import chosen_run
from format_bench.api.suggestion import shown
from format_bench.commands.recommend import recommend as recommend_command
from format_bench.conversion import Task, Watch, copied
from format_bench.errors import ConversionError, RequestError
from format_bench.progress import Silent
from formats.registry import FORMATS
from reports.analysis.recommendation.candidates import is_cold
from reports.analysis.recommendation.preferences import STAGES, Preferences

PREFERENCES = (
    *("weights", "uses", "needs", "max_memory_bytes", "reads_per_save"),
    *("bandwidth_bytes_per_s", "accept"),
)
"""Parameters of `recommend` that state what the user wants, and not how it is measured."""


@dataclass(frozen=True)
class Converted:
    """A table that was converted and verified.

    `losses` maps the name of each column that changed to a description of the change. `understood` describes how the
    file was read. `remarks` are warnings about the file, of two lines each.
    """

    data: Path
    out: Path
    variant: str
    rows: int
    columns: Mapping[str, str]
    """Name of each column -> its Arrow type."""
    input_bytes: int
    stored_bytes: int
    store_ns: int
    """Time for reading the input and storing the copy."""
    verify_ns: int
    losses: Mapping[str, str]
    understood: Mapping[str, str]
    remarks: Sequence[str]


def convert(
    data: Path | str,
    out: Path | str,
    *,
    variant: str | None = None,
    recommended: Run | Path | str | None = None,
    datasets: str | Sequence[str] = (),
    allow_loss: str | Sequence[str] = (),
    force: bool = False,
    options: ReadOptions = AS_FOUND,
    watcher: Watcher | None = None,
) -> Converted:
    """Store the whole table `data` as `out` in another format, read the copy back, and compare it with the table.

    The copy appears at `out` only when it is complete and verified. Memory is bounded if the variant can store and read
    a table batch by batch; otherwise the whole table must fit into memory.

    variant: A variant such as 'parquet[engine=pyarrow,codec=zstd]', or the name of a format for its default variant.
    recommended: A run, or its folder; the variant is the one that it recommends, by the preferences of its command. If
        its command named none, the default preferences of `recommend` decide. If the run has several data sets,
        `datasets` names one of them.
    allow_loss: Names of columns that may change as the variant declares; '*' allows this for every column.
    force: Whether to replace what is at `out`.
    options: How the table is read.

    Raises RequestError for invalid arguments, DataError for a table that is refused, AdapterError for a variant that
    does not exist or is not installed, ConversionError for a copy that would be incomplete or different, and OSError.
    """
    if (variant is None) == (recommended is None):
        fault = "The format of the copy was not named." if variant is None else "Two formats of the copy were named."
        raise RequestError(
            fault,
            "Use either `variant` or `recommended`, e.g. `variant='parquet[engine=pyarrow,codec=zstd]'`.",
            parameter="variant",
            given=variant,
        )
    heard = watcher or Silent()
    source = table_input.find(Path(data))
    table_input.check_options(source, options.checked())
    spelled = str(variant)
    if recommended is not None:
        spelled = _recommended(recommended, texts("datasets", datasets), heard)
    adapter = _adapter(spelled)
    place = _place(Path(out), source.path, adapter, force=force)
    names = texts("allow_loss", allow_loss)
    adapter.load_library()
    with work_folders("convert", place.parent, (str(place.parent),)) as folders:
        folder = folders[str(place.parent)]
        task = Task(source, options, adapter, None if "*" in names else names, lambda: shutil.disk_usage(folder).free)
        copy = copied(task, folder / place.name, _watch(heard))
        linux.fsync_all(folder / place.name)
        _put(folder / place.name, place, folder / "replaced", force=force)
    return Converted(
        data=source.path,
        out=place,
        variant=adapter.variant,
        rows=copy.facts.rows,
        columns={field.name: str(field.type) for field in copy.schema},
        input_bytes=sum(file.size_bytes for file in source.files),
        stored_bytes=copy.stored_bytes,
        store_ns=copy.store_ns,
        verify_ns=copy.verify_ns,
        losses=copy.losses,
        understood={"kind": source.kind, **copy.facts.understood},
        remarks=copy.facts.remarks,
    )


def _adapter(spelled: str) -> TabularFormat:
    """Return the adapter of a variant.

    Raises AdapterError if the variant does not exist or is not installed. Raises RequestError if a copy in this variant
    cannot equal the table, for example because the variant sorts the rows.
    """
    adapter = FORMATS.build(spelled)
    if adapter.native is Native.BUFFERS:
        raise RequestError(
            f"{adapter.format} is a baseline for measurements and stores no types of columns.",
            "Choose a format; 'format-bench list formats' shows them.",
            parameter="variant",
            given=spelled,
        )
    if adapter.values.get("order") is not None:
        raise RequestError(
            f"{adapter.variant} sorts the rows, but a copy must keep the rows in the order of the table.",
            f"Sort the table first, then convert it without order={adapter.values['order']}.",
            parameter="variant",
            given=spelled,
        )
    return adapter


def _recommended(stored: Run | Path | str, datasets: Sequence[str], heard: Watcher) -> str:
    """Return the variant that a stored run recommends by the preferences that its command named.

    If the command named none that can be read, the default preferences decide, and `heard` gets a note. Raises
    RequestError if the run recommends no variant for tables.
    """
    run = chosen_run(stored_runs(stored), datasets, Preferences())
    asked = _recorded_preferences(run.info.command)
    if asked is not None and any(is_cold(sample.conditions) for sample in run.samples):
        # Times of cold reads include the device. Earlier versions accepted a bandwidth for them.
        asked.pop("bandwidth_bytes_per_s", None)
    answer = recommend(stored=run, datasets=datasets, **(asked or {}))
    if not answer.found.ranked or not kind_of_target(answer.question.conditions.target).has_columns:
        raise RequestError(
            f"The run {shown(run.folder)} recommends no format for a table.",
            "Name a variant by `variant`.",
            parameter="recommended",
            given=stored,
        )
    if asked is None:
        usual = answer.found.preferences
        weights = ",".join(f"{name}={weight:g}" for name, weight in usual.weights.items())
        heard.note(
            f"{shown(run.folder)} has no command of 'recommend' that this version can read, so the default preferences "
            f"chose the variant: weights {weights}, {usual.accept} formats"
        )
    advice = answer.within
    best = answer.found.ranked[0].candidate.variant if advice is None else advice.advised.change.variant
    # `nulls` is a setting of the measuring code.
    return str(best.without("nulls"))


def _recorded_preferences(command: Sequence[str]) -> dict[str, Any] | None:
    """Return the preferences in a recorded command as keywords of `recommend`. `command` has the words of a command
    line, or one text with a call from Python.

    Return None for a command other than `recommend`, and for one that this version cannot parse.
    """
    given = _of_call(command[0]) if len(command) == 1 else _of_words(command)
    if given is None:
        return None
    found = {name: value for name, value in given.items() if name in PREFERENCES}
    if given.get("within") is not None:
        # Comparing the settings of one format accepts any maturity.
        found["accept"] = STAGES[-1]
    return found


def _of_words(words: Sequence[str]) -> dict[str, Any] | None:
    if list(words[1:2]) != [recommend_command.name]:
        return None
    try:
        return recommend_command.make_context(recommend_command.name, list(words[2:])).params
    except click.ClickException:
        return None


def _of_call(text: str) -> dict[str, Any] | None:
    try:
        # The text of a table in memory, such as '<pandas DataFrame in memory>', is not Python.
        call = ast.parse(re.sub(r"\bdata=<[^<>]*>", "data=None", text), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == recommend.__name__):
            return None
        named = {each.arg: each.value for each in call.keywords if each.arg is not None}
        return {name: ast.literal_eval(named[name]) for name in (*PREFERENCES, "within") if name in named}
    except (SyntaxError, ValueError):
        return None


def _place(out: Path, source: Path, adapter: TabularFormat, *, force: bool) -> Path:
    """Return the absolute path of the copy. Raises RequestError if the copy cannot be stored there, or if it would
    replace something without `force`."""
    place = Path(os.path.abspath(out))
    if not place.name or not place.parent.is_dir():
        raise RequestError(parameter="out", given=str(out), allowed="a path in an existing folder")
    if not place.name.lower().endswith(adapter.suffix):
        # Some libraries choose the codec or the kind of file by the ending.
        raise RequestError(
            f"The name of the copy must end with {adapter.suffix} for {adapter.variant} (got {out}).",
            f"Use e.g. {shlex.quote(place.name.partition('.')[0] + adapter.suffix)}.",
            parameter="out",
            given=str(out),
        )
    real = Path(os.path.realpath(place))
    if real == source or source in real.parents or real in source.parents:
        relation = "is" if real == source else "is inside" if source in real.parents else "contains"
        raise RequestError(f"{out} {relation} the table that is read.", "Name another path.", parameter="out")
    if os.path.lexists(place) and not force:
        raise RequestError(
            f"{out} exists.", "Name another path, or replace it by `force=True`.", parameter="out", given=str(out)
        )
    return place


def _put(made: Path, place: Path, replaced: Path, *, force: bool) -> None:
    """Move the copy to `place`. With `force`, the copy replaces what is at `place`. If one of the two is a folder, what
    was there is first moved to `replaced`, and is restored if the move of the copy fails.

    Raises ConversionError if something has appeared at `place` and may not be replaced.
    """
    if os.path.lexists(place):
        if not force:
            fault = f"{place} was created during the conversion."
            raise ConversionError(fault, "Name another path, or use `force=True`.")
        if made.is_dir() or place.is_dir():
            place.rename(replaced)
    try:
        made.rename(place)
    except OSError:
        with suppress(FileNotFoundError):
            replaced.rename(place)
        raise
    linux.fsync_all(place)


def _watch(heard: Watcher) -> Watch:
    """Return functions that report the progress to a watcher, with an estimate of the time left in the current
    stage."""
    began_ns = now_ns()

    def stage(text: str) -> None:
        nonlocal began_ns
        began_ns = now_ns()
        heard.stage(text)

    def rows(done: int, of: int) -> None:
        if not of:
            heard.step(f"{done:,} rows", None)
            return
        passed_s = (now_ns() - began_ns) / 1e9
        heard.step(f"{done:,} of {of:,} rows", passed_s * (of - done) / max(done, 1))

    return Watch(stage, rows)
