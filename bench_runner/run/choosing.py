"""Measure for `recommend`, which recommends a format, within a short time. First, a screening measures every candidate
format on few rows. Then a race measures the candidates that may still be the best.

The screening and the race are ordinary runs. The result folder of the screening is inside the result folder of the
race. Functions that the caller passes decide which variants take part in the race, and which variants may still win
after each round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from bench_runner.clock import now_ns
from bench_runner.data_kinds import DOCUMENTS, IMAGES, KINDS, TABLES, ChoiceLimits, DataKind
from bench_runner.errors import PlanError
from bench_runner.operations import operation_of
from bench_runner.plan.candidates import is_chosen, names_left_out
from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import Run, Sample, changed
from bench_runner.run.measuring import measure
from bench_runner.run.options import Options
from bench_runner.run.session import Race
from bench_runner.run.watcher import Watcher
from bench_runner.suites import SUITES, Suite
from bench_runner.variants import is_raw_io, operation_name_of, variant_of
from bench_runner.worker.sampling.block import FEWEST_KEPT
from data_generator.catalogue import CATALOGUE
from data_generator.dataset import Dataset

_WHOLE = (SAVE, READ)
SCREENING = "sifting"
"""Name of the screening's result folder, inside the result folder of the race. Do not change the name, because stored
runs have it."""
LEAST_BUDGET_S = 10.0
"""Minimum seconds for the rounds of the race, even if the screening has used up the budget."""
SCREENING_SHARE = 0.4
"""If the number of rows is chosen by time, the screening starts no new round after this share of the budget."""
ROUNDS_OF_ALL = 3
"""If the number of rows is chosen by time, all variants of a race must be able to have this many rounds. After these
rounds, the race drops variants that are clearly worse."""
ROWS_STEP = 1.2
"""Numbers of rows are tried in descending order. Each number is the number before it divided by this factor."""
BASELINE_SHARE = 1 / 4
"""Largest share of the remaining budget that one round of the user's current format may take. If a round would take
more, the race omits the current format, and only the screening measures it."""
PREPARATION_S, PILOT_S = 11.0, 9.0
"""Approximate seconds that a race needs before its first round. PREPARATION_S includes the test of the memory probe.
PILOT_S is for the pilot round, which only a race without a screening needs. Both are used only for the minimum duration
of a race."""

SMALLER = "table[share=0.25]"
"""A smaller sample of the user's table, for extrapolation to the whole table."""


def is_sample(dataset: Dataset) -> bool:
    """Return whether the data set is a sample of the user's table."""
    return int(dataset.source.get("input_rows", 0)) > dataset.rows


def kind_of(request: Request) -> DataKind:
    """Return the kind of the requested data: documents, images or a table. The user's own data are documents if the
    request names a key field, and otherwise a table. No file is opened."""
    if request.data is not None or not request.datasets:
        return DOCUMENTS if request.key is not None else TABLES
    entries = (CATALOGUE.get(operation_name_of(name).name) for name in request.datasets)
    kinds = {entry.kind for entry in entries if entry is not None}
    return KINDS[kinds.pop()] if len(kinds) == 1 else TABLES


def limits_of(kind: DataKind) -> ChoiceLimits:
    """Return the limits of `recommend` for a kind of data, such as the largest number of rows. Raises PlanError if
    `recommend` does not support this kind."""
    if kind.choice is None:
        raise PlanError(
            f"recommend does not support {kind.name}: {kind.not_recommended}.",
            f"Measure {kind.name} with 'run {kind.suite}'.",
        )
    return kind.choice


def choosing_plan(
    request: Request, kind: DataKind, *, on_rows: Callable[[str, int], None] | None = None, most_datasets: int = 1
) -> Plan:
    """Return the plan for measuring all candidates on one data set. The data set is the user's own or one that the user
    selected by name. `on_rows` is called with a name and a number of rows while a file is read. Raises PlanError if the
    plan would have more than `most_datasets` data sets. Also raises the errors of `make_plan`."""
    suite, request = CANDIDATES[kind.name](request)
    plan = make_plan([suite], request, on_rows)
    if len(plan.datasets) > most_datasets:
        raise PlanError(
            f"A recommendation is about one data set, but `datasets` chooses {', '.join(plan.datasets)}.",
            "Name one data set.",
            parameter="datasets",
            given=request.datasets,
            allowed=tuple(plan.datasets),
        )
    return plan


def _of_tables(request: Request) -> tuple[Suite, Request]:
    """Return the suite of all candidates for tables, and the request. If the request has operations on parts of a
    table, add the variants of the suite 'access', whose settings affect such operations. Then also omit formats that
    must read the whole table for each of these operations, because this would take minutes."""
    choice, access = SUITES["choice"], SUITES["access"]
    if not any(operation_of(name).name not in _WHOLE for name in request.operations):
        return choice, request
    too_slow = names_left_out(access)
    both = (*choice.variants.spelled, *access.variants.spelled)
    fast = [variant for variant in both if variant_of(variant).format_name not in too_slow]
    left_out = {**choice.variants.left_out, **access.variants.left_out}
    rule = replace(choice.variants, spelled=tuple(dict.fromkeys(fast)), left_out=left_out)
    return replace(choice, variants=rule), request


def _of_images(request: Request) -> tuple[Suite, Request]:
    """Return the suite of candidates for images, and the request. Unless the request names formats, change it to
    include all formats for images, except variants that return views. Views share memory, so they cannot be compared
    with other results."""
    if not request.formats:
        request = changed(request, formats=("^",), formats_not=(*request.formats_not, "arrays=views"))
    return SUITES["image"], request


def _of_documents(request: Request) -> tuple[Suite, Request]:
    """Return the suite of all candidate document stores, and the request. Include the layouts of this project's own
    store. Omit variants with the setting `way`, which differ only in how they execute queries."""
    suite = SUITES["documents"]
    packed = tuple(f"{name}[codec={codec}]" for name in ("bson", "messagepack") for codec in ("none", "zstd"))
    stored = tuple(variant for variant in suite.variants.spelled if "way" not in variant_of(variant).settings)
    return replace(suite, variants=replace(suite.variants, spelled=(*stored, *packed))), request


CANDIDATES: dict[str, Callable[[Request], tuple[Suite, Request]]] = {
    TABLES.name: _of_tables,
    IMAGES.name: _of_images,
    DOCUMENTS.name: _of_documents,
}
"""Maps the name of a kind of data to a function. The function takes a request and returns the suite of all candidates,
and the request, possibly with formats added."""


def measure_for_choice(
    request: Request,
    options: Options,
    new_folder: Callable[[], Path],
    command: Sequence[str],
    watcher: Watcher,
    *,
    kind: DataKind,
    budget_s: float,
    decisive: Sequence[str] = (),
    may_win: Callable[[Run], Sequence[str]],
    contending: Callable[[Run], Sequence[str]],
    propose: Callable[[Dataset, Path], Sequence[str]] | None = None,
) -> Run:
    """Do the screening and the race within about `budget_s` seconds, and return the run of the race. Omit the screening
    if the data are small. `new_folder` is called after the plan has been checked, and returns the path of a new result
    folder.

    `may_win` returns the screened variants that take part in the race. `contending` returns the variants that may still
    win after the rounds so far. The race ends when only one variant may still win, or when the budget is spent. If the
    request has a baseline format, the screening measures it, and the race too unless it is too slow.

    If `propose` is given, it is called with the data set and the result folder, and returns the variants of the race.
    There is no screening then.

    `decisive` are the names of operations that the recommendation depends on. Raises PlanError if the data are too
    small for one of these operations, and the errors of `choosing_plan` and `measure`.
    """
    began_ns = now_ns() if options.began_ns is None else options.began_ns

    def report(name: str, rows: int) -> None:
        watcher.step(f"{name}: {rows:,} read", None)

    limits = limits_of(kind)
    options = replace(options, block_ns=limits.block_ns)
    watcher.stage("plan")
    if request.rows is None:
        request = changed(request, rows=limits.most_rows)
        (dataset,) = choosing_plan(request, kind, on_rows=report).datasets.values()
        request = changed(request, rows=_affordable(limits, dataset))
    plan = choosing_plan(request, kind, on_rows=report)
    (dataset,) = plan.datasets.values()
    _check_any(plan, request)
    _check_enough(dataset, decisive)
    folder = new_folder()
    few = _screened(limits, dataset)
    screening = None
    if propose is None:
        watcher.note(_announcement(plan, dataset, kind, few, budget_s))
    else:
        watcher.note(f"{_duration(budget_s)}: settings of one format on {dataset.rows:,} {kind.counted}")
        folder.mkdir(parents=True, exist_ok=True)
        request = changed(request, formats=tuple(propose(dataset, folder)))
        few = dataset.rows
    if dataset.rows > few:
        brief = replace(options, quick=True, rounds=None, fidelity=False, brief=True)
        short = changed(request, rows=few)
        if limits.in_time:
            # On a busy machine, repeating samples that do not count would take all of the time.
            brief = replace(brief, budget_s=SCREENING_SHARE * budget_s, began_ns=began_ns)
        first = choosing_plan(short, kind)
        place = folder / SCREENING
        place.mkdir()
        screening, _ = measure(first, short, brief, place, command, watcher)
        racing = tuple(may_win(screening))
        request = changed(request, formats=racing or request.formats)
        if limits.in_time:
            left_s = max(budget_s - (now_ns() - began_ns) / 1e9, LEAST_BUDGET_S) - PREPARATION_S
            fitting = rows_in_time(screening, {*racing, request.baseline}, dataset.rows, left_s)
            request = changed(request, rows=max(fitting, min(2 * few, dataset.rows)))
            watcher.note(f"measuring the best of them repeatedly, on {request.rows:,} {kind.counted}")
    # Results on images and documents are not extrapolated, because stores that allocate blocks of a fixed size grow in
    # steps.
    if is_sample(dataset) and kind.has_columns:
        request = changed(request, datasets=(dataset.name, SMALLER))
    now = now_ns()
    least_s = LEAST_BUDGET_S + PREPARATION_S + (PILOT_S if screening is None else 0)
    left_s = max(budget_s - (now - began_ns) / 1e9, least_s)
    rows = min(dataset.rows, request.rows or dataset.rows)
    if screening is not None and _took_s(screening, request.baseline) * rows / few > BASELINE_SHARE * left_s:
        request = changed(request, baseline=None)
    counted = replace(options, budget_s=left_s, began_ns=now)
    return measure_race(request, counted, folder, command, watcher, Race(contending, screening), kind)


def _check_any(plan: Plan, request: Request) -> None:
    """Raise PlanError if none of the variants that the user chose can be measured, for example because a library is not
    installed. The baseline (the user's current format) does not count unless the user also chose it, because only
    chosen variants can be recommended."""
    chosen = [chain for chain in plan.chains if is_chosen(chain.variant, request.formats, request.formats_not)]
    excluded = [each for each in plan.excluded if not is_raw_io(each.chain.variant)]
    if request.formats and excluded and all(is_raw_io(chain.variant) for chain in chosen):
        variant, failure = excluded[0].chain.variant, excluded[0].failure
        raise PlanError(
            f"None of the chosen formats can be measured: {variant} is {failure.kind}.",
            failure.reason,
            parameter="formats",
            given=request.formats,
        )


def _check_enough(dataset: Dataset, decisive: Sequence[str]) -> None:
    for name in decisive:
        operation = operation_of(name)
        reason = operation.refusal(dataset.schema, dataset.rows)
        if reason is None and not operation.concerns(dataset.name):
            reason = "this operation is for other data sets"
        if reason is not None:
            raise PlanError(
                f"The choice depends on {operation.title}, which cannot be measured on {dataset.name}: {reason}.",
                "Provide other data, or weigh something else, e.g. `weights={'read': 1, 'size': 2, 'save': 1}`.",
                parameter="weights",
                given=name,
            )


def measure_race(
    request: Request,
    options: Options,
    folder: Path,
    command: Sequence[str],
    watcher: Watcher,
    race: Race,
    kind: DataKind,
) -> Run:
    """Do only the race, without a screening, and return its run. All variants of the request take part. A variant is
    dropped when it can no longer win."""
    plan = choosing_plan(request, kind, most_datasets=2)
    run, _ = measure(plan, request, replace(options, fidelity=False), folder, command, watcher, race)
    return run


def _took_s(run: Run, variant: str | None) -> float:
    """Return the mean seconds of a round of a variant, or 0 if the run has no samples of the variant."""
    own = [sample for sample in run.samples if sample.variant == variant]
    rounds = {sample.round for sample in own}
    # If a call was repeated, use the total time of all calls.
    took_ns = sum(sample.figures.get("calls_ns", sample.figures.get("wall_ns", 0)) for sample in own)
    return took_ns / 1e9 / max(len(rounds), 1)


def _affordable(limits: ChoiceLimits, dataset: Dataset) -> int:
    """Return the number of rows to measure. This number is smaller if rows are large."""
    row_bytes = _row_bytes(dataset)
    if limits.most_bytes is None or row_bytes is None:
        return limits.most_rows
    return max(min(dataset.rows, int(limits.most_bytes / row_bytes)), min(dataset.rows, limits.fewest_rows))


def rows_in_time(screening: Run, racing: Collection[str | None], most_rows: int, left_s: float) -> int:
    """Return a number of rows, at most `most_rows`, with which the variants in `racing` can have ROUNDS_OF_ALL rounds
    in `left_s` seconds. The time of a round is predicted from the samples of the screening.

    The time of a call, and the time of verifying its result, grow with the rows. Other times, such as starting a
    server, are mostly fixed.
    """
    # A screening on a busy machine repeats samples.
    last = {(sample.variant, sample.operation): sample for sample in screening.samples if sample.variant in racing}
    rows = most_rows
    while rows > 1 and ROUNDS_OF_ALL * sum(_predicted_s(sample, rows) for sample in last.values()) > left_s:
        rows = int(rows / ROWS_STEP)
    return max(rows, 1)


def _predicted_s(sample: Sample, rows: int) -> float:
    figures, more = sample.figures, rows / max(sample.rows, 1)
    verify_ns, call_ns = figures.get("verify_ns", 0), figures.get("wall_ns", 0)
    calls_ns = figures.get("calls_ns", call_ns)
    fixed_ns = max(sample.taken_ns - verify_ns - calls_ns, 0)
    # A block is not longer than before, unless it then has too few calls.
    fewest = min(figures.get("repetitions", 1), FEWEST_KEPT)
    return (fixed_ns + verify_ns * more + max(min(calls_ns * more, calls_ns), fewest * call_ns * more)) / 1e9


def _announcement(plan: Plan, dataset: Dataset, kind: DataKind, few: int, budget_s: float) -> str:
    """Return what is about to be measured, and how long it will take."""
    variants = len({chain.variant for chain in plan.chains if not is_raw_io(chain.variant)})
    told = f"{_duration(budget_s)}: {variants} variant{'s' * (variants != 1)}"
    if dataset.rows <= few:
        return f"{told} on {dataset.rows:,} {kind.counted}, the best repeatedly"
    return f"{told} on {few:,} {kind.counted}, then the best repeatedly on up to {dataset.rows:,}"


def _duration(budget_s: float) -> str:
    return f"takes about {budget_s / 60:.2g} min (--budget)"


def _screened(limits: ChoiceLimits, dataset: Dataset) -> int:
    if limits.screened_share == 1:
        return limits.screened_rows
    return min(limits.screened_rows, max(int(dataset.rows * limits.screened_share), limits.fewest_rows))


def _row_bytes(dataset: Dataset) -> float | None:
    """Return the bytes of a row, or None if unknown. For images, this is the size of the largest image in memory. For
    the user's file, this is the mean over its rows."""
    if dataset.largest_side is not None:
        return 3 * dataset.largest_side**2
    if "size_bytes" not in dataset.source:
        return None
    return max(int(dataset.source["size_bytes"]) / max(int(dataset.source.get("input_rows", dataset.rows)), 1), 1)
