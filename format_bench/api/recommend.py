"""Check a request for a recommendation and answer it, by measuring or from a stored run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from bench_runner.clock import now_ns
from bench_runner.conditions import Conditions
from bench_runner.data_kinds import DOCUMENTS, IMAGES, TABLES, DataKind, kind_of_target
from bench_runner.operations import operation_of
from bench_runner.operations.targets import Target
from bench_runner.request import Request
from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import Run, changed
from bench_runner.run.choosing import kind_of, limits_of
from bench_runner.run.measuring import machine_name, new_folder
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.variants import operation_name_of
from data_generator.errors import DataError
from data_generator.imported.images import image_input
from data_generator.imported.tables.held_table import HeldTable
from format_bench.api.document_hint import document_hint
from format_bench.api.measured import measured_answer
from format_bench.api.own_format import PLAIN, plain_call
from format_bench.api.own_table import takes_tables
from format_bench.api.ranking import check_bandwidth
from format_bench.api.report import stored_runs
from format_bench.api.request import (
    RESULTS,
    SharedFields,
    above_zero,
    at_least,
    call_text,
    checked_machine,
    one_of,
    refuse_unknown,
    requested,
    result_folder,
    several,
    texts,
    usual_values,
)
from format_bench.api.stored import chosen_run, stored_answer
from format_bench.errors import RequestError
from format_bench.progress import Silent
from format_bench.uses import OF_DOCUMENTS_ONLY, PARTS, uses_of, weighed
from format_bench.within.study import FORMATS_WITHIN, Study
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.needs import MEASURED
from reports.analysis.recommendation.preferences import NEEDS, OF_DOCUMENTS, STAGES, USE, WEIGHED, Preferences, Use

WHOLE = (SAVE, READ)
"""Operations that are always measured, because they give sizes and memory. Their times are also the yardstick that
shows whether a format reads a part of the data fast."""
HOW_TO_MEASURE = (
    *("key", "rows", "cache", "threads", "target", "strings", "seed", "out"),
    *("machine", "budget_s", "work_dirs", "allow_reorder"),
)
"""Parameters of `recommend` that cannot be combined with a stored run, because nothing is measured then."""
USUAL_WEIGHTS: Mapping[str, Mapping[str, float]] = {DOCUMENTS.name: OF_DOCUMENTS}
"""Name of the kind of data -> its default weights, for kinds whose defaults have operations on a part of the data."""


@takes_tables
def recommend(
    data: Path | str | Any = None,
    *,
    stored: Run | Path | str | None = None,
    weights: Mapping[str, float] | None = None,
    uses: Mapping[str, float] | None = None,
    needs: Sequence[str] = (),
    max_memory_bytes: int | None = None,
    reads_per_save: float | None = None,
    bandwidth_bytes_per_s: float | None = None,
    accept: str = STAGES[0],
    within: str | None = None,
    allow_reorder: bool = False,
    budget_s: float = 120.0,
    seed: int | None = None,
    out: Path | str | None = None,
    machine: str | None = None,
    watcher: Watcher | None = None,
    command: Sequence[str] = (),
    began_ns: int | None = None,
    **wanted: Unpack[SharedFields],
) -> Answer:
    """Recommend a variant for some data and its use.

    Return an Answer. `found.ranked` is the ranking, with the best variant first; it is empty if no variant satisfies
    the needs. `found.baseline` is the user's current variant, or a plain library call if that is unknown. `imports`,
    `save` and `read` are lines of Python.

    Data, one of:
        data: Your own table: the path of a file (`options` define how it is read), a DataFrame, an Arrow table, or any
            object with `__arrow_c_stream__`. Or a folder of images. Or a JSON Lines file of documents, if `key` names a
            field that is unique in each document.
        datasets: A built-in data set; with `stored`, a data set of that run.
        stored: A run or its folder. The answer comes from its figures, and nothing is measured.

    Preferences:
        weights: Numbers of at least 0 for 'read', 'save', 'size', 'read_memory', 'save_memory' and for operations such
            as 'take' or 'take[rows=10]' (default: read 3, size 2, save 1).
        uses: How often per day each operation is done, e.g. {'take[rows=100]': 1000, 'read': 1}. Variants are compared
            by the total time of these operations per day.
        needs: What a format must be able to do: 'append', 'projection', 'random-access' and 'pushdown' are judged by
            measured times; 'types', 'nested', 'no-pickle', 'other-languages' and 'single-file' by its properties.
        max_memory_bytes: Variants that need more memory are dropped.
        reads_per_save: Compare the time of one save and this many reads together, instead of read time and save time.
        bandwidth_bytes_per_s: Bandwidth of your storage. The time to transfer the data is added to the times.
        accept: Minimum maturity: 'established', 'young', or 'experimental', which accepts every format.
        within: Compare settings of this format instead of formats: 'parquet', 'feather', 'orc' or 'lance'. The field
            `within` of the answer has the advice.
        allow_reorder: With `within='parquet'`, also try to sort the rows by a column.

    How to measure:
        budget_s: Seconds for the whole measurement, counted from `began_ns`.
        rows: Largest number of rows to measure.
        The other keywords are explained in the docstring of `run`.

    Raises the same errors as `run`, and RunError if nothing could be measured.
    """
    given = {name: value for name, value in locals().items() if name != "wanted"} | wanted
    refuse_unknown(wanted, SharedFields)
    began_ns = now_ns() if began_ns is None else began_ns
    for parameter, number, unit in (
        ("max_memory_bytes", max_memory_bytes, "bytes"),
        ("reads_per_save", reads_per_save, "reads for each save"),
        ("bandwidth_bytes_per_s", bandwidth_bytes_per_s, "bytes per second"),
    ):
        if number is not None:
            above_zero(parameter, number, unit)
    done = uses_of(_mapping("uses", uses, "{'take[rows=100]': 1000, 'read': 1}")) if uses is not None else ()
    datasets = texts("datasets", wanted.get("datasets", ()))
    kind = TABLES if stored is not None else _kind(data, wanted.get("key"), datasets)
    decides, titles = _weights(weights, done, kind)
    wished = several("needs", needs, str, "('append', 'types')")
    preferences = Preferences(
        weights=decides,
        uses=done,
        titles={**titles, **{use.operation: use.title for use in done}},
        needs=tuple(dict.fromkeys(one_of("needs", need, NEEDS) for need in wished)),
        max_memory_bytes=max_memory_bytes,
        reads_per_save=reads_per_save,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        accept=one_of("accept", accept, STAGES),
    )
    _check_whole_times(preferences)
    check_bandwidth(preferences, Conditions(cache=wanted.get("cache", "warm")))
    if data is not None and stored is not None:
        raise RequestError(
            "`data` and `stored` cannot be combined: `data` is measured now, but `stored` was measured before.",
            "Omit one of the two.",
            parameter="stored",
            given=stored,
        )
    if data is None and stored is None and not datasets:
        raise RequestError(
            "No data were named.",
            "Use `data` for your own, `datasets` for a built-in data set, or `stored` for a stored run.",
            parameter="data",
        )
    if within is not None:
        preferences = _within_preferences(within, preferences, given, kind)
    elif allow_reorder:
        raise RequestError(
            "`allow_reorder` needs `within='parquet'`.", "Omit it.", parameter="allow_reorder", given=allow_reorder
        )
    if stored is not None:
        _check_measures_nothing(given)
        chosen = texts("formats", wanted.get("formats", ())), texts("formats_not", wanted.get("formats_not", ()))
        run = chosen_run(stored_runs(stored), datasets, preferences)
        kinds = [kind_of_target(target) for target in {sample.conditions.target for sample in run.samples}]
        usual = next((kind for kind in kinds if kind.name in USUAL_WEIGHTS), None)
        if weights is None and not done and usual is not None:
            decides, titles = _weights(None, (), usual)
            # Runs of the suite measured other operations than `recommend` does.
            measured = {*WEIGHED, *(sample.operation for sample in run.samples)}
            decides = {name: weight for name, weight in decides.items() if name in measured}
            preferences = replace(preferences, weights=decides, titles=titles)
        return stored_answer(run, preferences, datasets, *chosen)
    request = requested(data=data, **wanted)
    if kind is TABLES and _holds_images(request.data):
        kind = IMAGES
    limits_of(kind)
    _check_fits(preferences, kind)
    request = _with_parts(request, preferences, kind)
    watcher = watcher or Silent()
    if kind.has_key:
        request = changed(request, baseline=PLAIN[kind.name])
    elif request.data is not None and request.data_title is None:
        if request.data.is_file() and (seen := document_hint(request.data)):
            watcher.note(
                f"{request.data.name}: read as a table, although {seen}. To treat it as documents and compare "
                "document stores, use --key FIELD"
            )
        request = changed(request, baseline=plain_call(request.data, kind))
    study = None
    if within is not None:
        study = Study(within, preferences, Target(request.target or "pandas", request.strings), budget_s, allow_reorder)
        request = changed(request, baseline=study.default)
    how = Options(seed=at_least("seed", seed, 0), machine=checked_machine(machine), began_ns=began_ns)
    return measured_answer(
        request,
        how,
        lambda: result_folder(out, False, lambda: new_folder(RESULTS, machine_name(how))),
        command or [call_text(recommend, (), given)],
        watcher,
        preferences,
        kind=kind,
        budget_s=above_zero("budget_s", budget_s, "seconds"),
        propose=None if study is None else lambda dataset, folder: study.variants(dataset, folder, watcher),
    )


def _within_preferences(name: str, preferences: Preferences, given: Mapping[str, Any], kind: DataKind) -> Preferences:
    """Return the preferences for comparing settings of one format. The returned preferences accept any maturity. Raises
    RequestError for parameters that cannot be combined with `within`."""
    one_of("within", name, FORMATS_WITHIN)
    if not kind.has_columns:
        raise RequestError(
            f"`within` compares settings for tables, not for {kind.name}.", "Omit it.", parameter="within", given=name
        )
    for other in ("formats", "formats_not", "stored"):
        if given.get(other):
            reason, hint = "`within` itself chooses the variants that are measured", ""
            if other == "stored":
                reason, hint = "with `stored`, nothing is measured", " `stored` alone repeats the advice of a run."
            raise RequestError(
                f"`within` and `{other}` cannot be combined: {reason}.",
                f"Omit one of the two.{hint}",
                parameter=other,
                given=given[other],
            )
    parts = ", ".join(operation for operation in preferences.operations if operation not in ("read", "save"))
    if given["allow_reorder"] and (name != "parquet" or parts):
        fault = f"`allow_reorder` needs `within='parquet'` (got {name!r})."
        if name == "parquet":
            fault = f"`allow_reorder` cannot be combined with weights or uses of {parts}: they depend on the row order."
        raise RequestError(fault, "Omit one of the two.", parameter="allow_reorder", given=True)
    return replace(preferences, accept=STAGES[-1])


def _check_measures_nothing(given: Mapping[str, object]) -> None:
    """Raise RequestError if a parameter in HOW_TO_MEASURE was given, because a stored run would ignore it."""
    usual = usual_values(recommend)
    for name in HOW_TO_MEASURE:
        if (given.get(name) or usual[name]) != usual[name]:
            raise RequestError(
                f"`{name}` cannot be combined with `stored`, which measures nothing.",
                f"Omit `{name}`; the answer names the conditions under which the run was measured.",
                parameter=name,
                given=given[name],
            )


def _mapping(parameter: str, given: object, example: str) -> Mapping[str, float]:
    if not isinstance(given, Mapping):
        raise RequestError(parameter=parameter, given=given, allowed=f"a mapping, e.g. {example}")
    return given


def _weights(
    given: Mapping[str, float] | None, uses: Sequence[Use], kind: DataKind
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the weight of each figure or operation, and the title of each operation on a part of the data.

    Operations have their full names, such as 'take[rows=10,...]'. With `uses`, the total time of all uses per day gets
    one weight, named 'use', and no other time can have a weight. Raises RequestError for invalid weights.
    """
    if given is None and not uses and kind.name in USUAL_WEIGHTS:
        return weighed(USUAL_WEIGHTS[kind.name])
    if given is None:
        return ({USE: 1.0} if uses else dict(Preferences().weights)), {}
    for name, weight in _mapping("weights", given, "{'read': 3, 'take': 1}").items():
        if not (isinstance(weight, int | float) and math.isfinite(weight) and weight >= 0):
            raise RequestError(
                f"`weights`: the weight of {name} must be a number of at least 0 (got {weight!r}).",
                parameter="weights",
                given=given,
                allowed="numbers of at least 0",
            )
    if not any(given.values()):
        raise RequestError(
            "`weights` must give at least one weight above 0.",
            "Write e.g. `weights={'read': 3, 'size': 2, 'save': 1}`.",
            parameter="weights",
            given=given,
        )
    weights, titles = weighed(given)
    if uses:
        others = (USE, "size", "read_memory", "save_memory")
        for name in weights:
            if name not in others:
                raise RequestError(
                    f"With `uses`, `weights` cannot weigh the time of {name}: `uses` already states how often each "
                    "operation is done.",
                    f"Weigh only {', '.join(others)}.",
                    parameter="weights",
                    given=given,
                    allowed=others,
                )
        weights.setdefault(USE, 1.0)
    elif USE in weights:
        raise RequestError(
            "`weights` can weigh 'use' only together with `uses`.",
            "Pass `uses` to state how you use the data.",
            parameter="uses",
        )
    return weights, titles


def _check_whole_times(preferences: Preferences) -> None:
    """Raise RequestError if a bandwidth or reads per save are combined with preferences that do not allow them.

    A bandwidth applies to whole reads and saves only, because it is unknown how many bytes an operation on a part of
    the data transfers. Reads per save cannot be combined with uses.
    """
    if not (preferences.uses or preferences.weighed_parts):
        return
    if preferences.bandwidth_bytes_per_s is not None:
        other = "`uses`" if preferences.uses else f"a weight of {preferences.weighed_parts[0]}"
        raise RequestError(
            f"`bandwidth_bytes_per_s` applies only to whole reads and saves, so it cannot be combined with {other}.",
            "Omit `bandwidth_bytes_per_s`, or weigh only whole reads and saves by `weights`. To measure reads from "
            "your device, use `cache='cold'`.",
            parameter="bandwidth_bytes_per_s",
            given=preferences.bandwidth_bytes_per_s,
        )
    if preferences.reads_per_save is not None and preferences.uses:
        raise RequestError(
            "`reads_per_save` cannot be combined with `uses`, which states how often each operation is done.",
            "State the reads and saves in `uses` instead, e.g. `uses={'read': 10, 'save': 1}`.",
            parameter="reads_per_save",
            given=preferences.reads_per_save,
        )


def _kind(data: Path | str | HeldTable | None, key: str | None, datasets: Sequence[str]) -> DataKind:
    """Return the kind of the requested data: tables, images or documents. A file without a key counts as a table.

    Raises RequestError if the key is empty, if there is a key without `data`, or if a key is combined with `datasets`.
    """
    if key == "":
        raise RequestError(
            next_step="Write e.g. `key='id'`.",
            parameter="key",
            given=key,
            allowed="the field that identifies a document",
        )
    if key is not None and data is None:
        raise RequestError(
            "`key` needs `data`: `key` names a field of your own documents.",
            "Name the file of the documents too, e.g. `data='FILE.jsonl'`.",
            parameter="key",
            given=key,
        )
    if key is not None and datasets:
        raise RequestError(
            "`key` and `datasets` cannot be combined: `key` is for your own documents only.",
            "Omit `datasets`.",
            parameter="datasets",
            given=tuple(datasets),
        )
    named = Request(datasets=tuple(datasets), data=None if data is None else Path(data), key=key)
    return kind_of(named)


def _check_fits(preferences: Preferences, kind: DataKind) -> None:
    """Raise RequestError for operations and needs that do not apply to this kind of data."""
    offered = [name for name in PARTS if (name in OF_DOCUMENTS_ONLY) == kind.has_key]
    for operation in preferences.operations:
        name = operation_name_of(operation).name
        if name in PARTS and name not in offered:
            held, hint = "documents", ""
            if not kind.has_key:
                held, hint = "tables or images", " `key` treats a JSON Lines file as documents."
            raise RequestError(
                f"{operation} does not apply to {held}.",
                f"Choose among {', '.join(offered)}.{hint}",
                given=operation,
                allowed=offered,
            )
    for need in preferences.needs:
        if kind.has_key and need in MEASURED:
            raise RequestError(
                f"`needs` cannot have {need!r} for documents: this need is measured for tables only.",
                "Weigh 'get' or 'fields' by `weights` instead.",
                parameter="needs",
                given=need,
            )


def _with_parts(request: Request, preferences: Preferences, kind: DataKind) -> Request:
    """Return the request with additional operations: those that have a weight, and those that show if a need is met.

    Some operations can return only Arrow tables. If one of these is added, the default target becomes 'arrow'. If the
    user chose the target 'pandas', such an operation is impossible. RequestError is raised if it has a weight or is one
    of the uses. If it would only show whether a need is met, it is left out, and what the formats declare about the
    need counts.
    """
    measured = [MEASURED[need].operation for need in preferences.needs if need in MEASURED and kind.has_columns]
    asked = [name for name in preferences.operations if name not in WHOLE]
    arrow = [name for name in (*asked, *measured) if operation_of(name).target_kinds == ("arrow",)]
    if arrow and request.target is None and kind.has_columns:
        request = changed(request, target="arrow")
    if any(name in arrow for name in asked) and request.target == "pandas":
        raise RequestError(
            f"`target='pandas'` is not possible: {arrow[0]} returns Arrow tables only.",
            "Omit `target`.",
            parameter="target",
            given="pandas",
            allowed=("arrow",),
        )
    if request.target != "arrow":
        measured = [name for name in measured if name not in arrow]
    parts = dict.fromkeys((*asked, *measured))
    return changed(request, operations=(*WHOLE, *parts)) if parts else request


def _holds_images(data: Path | None) -> bool:
    """Return whether the user's files are images, judging by their names."""
    if data is None:
        return False
    try:
        found = image_input.find(data)
    except DataError:
        return False
    # Parquet files count as tables, even if they contain images.
    return found.kind != image_input.PARQUET
