"""A short, fair measurement for one decision. Screening measures every candidate on few rows. Then a race measures the
candidates that may win.

Both parts are ordinary runs with ordinary result folders. The folder of the screening is inside the folder of the race.
The caller decides which variants may win after screening, and which may still win after each round of the race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench_runner.clock import now_ns
from bench_runner.data_kinds import DOCUMENTS, IMAGES, KINDS, TABLES, ChoiceLimits, DataKind
from bench_runner.errors import PlanError
from bench_runner.operations import operation_of
from bench_runner.plan.candidates import names_left_out
from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import Run, changed
from bench_runner.run.measuring import measure
from bench_runner.run.options import Options
from bench_runner.run.session import Race
from bench_runner.run.watcher import Watcher
from bench_runner.suites import SUITES, Suite
from bench_runner.variants import operation_name_of, variant_of
from data_generator.catalogue import CATALOGUE
from data_generator.dataset import Dataset

_WHOLE = (SAVE, READ)
SCREENING = "sifting"
"""Name of the screening's folder, inside the folder of the race. Stored runs use this name."""
LEAST_BUDGET_S = 10.0
"""Minimum budget of the rounds of a recommendation, however long earlier parts took."""
BASELINE_SHARE = 1 / 4
"""Largest share of the remaining budget that a round of the user's own format may take. If it would take more, only
the screening measures that format."""
PREPARATION_S, PILOT_S = 11.0, 9.0
"""Approximate time of a race before its first round: testing its memory probe, and the pilot round if there was no
screening. Only used for the minimum duration of a race."""

SMALLER = "table[share=0.25]"
"""A smaller sample of the user's table, for extrapolation to the whole table."""


def is_sample(dataset: Dataset) -> bool:
    """Return whether the data set is a sample of the user's table."""
    return int(dataset.source.get("input_rows", 0)) > dataset.rows


def kind_of(request: Request) -> DataKind:
    """Return the kind of the requested data. The user's own data are documents if a key is given, otherwise a table.
    Their files are not opened here."""
    if request.data is not None or not request.datasets:
        return DOCUMENTS if request.key is not None else TABLES
    entries = (CATALOGUE.get(operation_name_of(name).name) for name in request.datasets)
    kinds = {entry.kind for entry in entries if entry is not None}
    return KINDS[kinds.pop()] if len(kinds) == 1 else TABLES


def limits_of(kind: DataKind) -> ChoiceLimits:
    """Return the limits of `recommend` for this kind of data. Raises PlanError if `recommend` does not support it."""
    if kind.choice is None:
        raise PlanError(
            f"recommend does not support {kind.name}: {kind.not_recommended}.", f"Measure them by run {kind.suite}."
        )
    return kind.choice


def choosing_plan(
    request: Request,
    kind: DataKind,
    *,
    on_rows: Callable[[str, int], None] | None = None,
    most_datasets: int = 1,
) -> Plan:
    """Plan all candidates on one data set, either the user's or a named one. Raises PlanError or DataError."""
    suite, request = CANDIDATES[kind.name](request)
    plan = make_plan([suite], request, on_rows)
    if len(plan.datasets) > most_datasets:
        raise PlanError(
            f"A recommendation is about one data set, and `datasets` chooses {', '.join(plan.datasets)}.",
            "Name one of them.",
            parameter="datasets",
            given=request.datasets,
            allowed=tuple(plan.datasets),
        )
    return plan


def _of_tables(request: Request) -> tuple[Suite, Request]:
    """Return all candidates. For operations on parts of a table, include the settings that decide their cost, and omit
    formats for which reading everything each time would take minutes."""
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
    """Return every storage format for images, not only those of the suite. Omit views, because they share memory,
    unlike other results."""
    if not request.formats:
        request = changed(request, formats=("^",), formats_not=(*request.formats_not, "arrays=views"))
    return SUITES["image"], request


def _of_documents(request: Request) -> tuple[Suite, Request]:
    """Return all stores, with each layout of our own store. Omit ways to answer questions, because a choice has no
    questions."""
    suite = SUITES["documents"]
    packed = tuple(f"{name}[codec={codec}]" for name in ("bson", "messagepack") for codec in ("none", "zstd"))
    stored = tuple(variant for variant in suite.variants.spelled if "way=" not in variant)
    return replace(suite, variants=replace(suite.variants, spelled=(*stored, *packed))), request


CANDIDATES: dict[str, Callable[[Request], tuple[Suite, Request]]] = {
    TABLES.name: _of_tables,
    IMAGES.name: _of_images,
    DOCUMENTS.name: _of_documents,
}
"""Functions by kind of data. Each returns the suite of all candidates, and the request with formats filled in if none
are given."""


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
) -> Run:
    """Screen and race within about `budget_s` seconds, in the folder that `new_folder` creates once the plan is valid.
    Return the run of the race. Small data are not screened.

    `may_win` selects the screened variants that take part in the race. `contending` selects the variants that may still
    win after the rounds so far. These get rounds until one variant is left or the budget is spent. The request's
    baseline takes part in both, unless it is too slow. Raises the errors of `choosing_plan` and `measure`, and
    PlanError if the data are too few for a `decisive` operation with every store.
    """
    began_ns = now_ns() if options.began_ns is None else options.began_ns

    def report(name: str, rows: int) -> None:
        watcher.step(f"{name}: {rows:,} read", None)

    limits = limits_of(kind)
    watcher.stage("plan")
    if request.rows is None:
        request = changed(request, rows=limits.most_rows)
        (dataset,) = choosing_plan(request, kind, on_rows=report).datasets.values()
        request = changed(request, rows=_affordable(limits, dataset))
    plan = choosing_plan(request, kind, on_rows=report)
    (dataset,) = plan.datasets.values()
    _check_enough(dataset, decisive)
    folder = new_folder()
    few = _screened(limits, dataset)
    screening = None
    if dataset.rows > few:
        brief = replace(options, quick=True, rounds=None, fidelity=False, brief=True)
        short = changed(request, rows=few)
        first = choosing_plan(short, kind)
        place = folder / SCREENING
        place.mkdir()
        screening, _ = measure(first, short, brief, place, command, watcher)
        request = changed(request, formats=tuple(may_win(screening)) or request.formats)
    # Samples of other data are not extrapolated, because stores with parts of a fixed size grow in steps.
    if is_sample(dataset) and kind.has_columns:
        request = changed(request, datasets=(dataset.name, SMALLER))
    now = now_ns()
    least_s = LEAST_BUDGET_S + PREPARATION_S + (PILOT_S if screening is None else 0)
    left_s = max(budget_s - (now - began_ns) / 1e9, least_s)
    if screening is not None and _took_s(screening, request.baseline) * dataset.rows / few > BASELINE_SHARE * left_s:
        request = changed(request, baseline=None)
    counted = replace(options, budget_s=left_s, began_ns=now)
    return measure_race(request, counted, folder, command, watcher, Race(contending, screening), kind)


def _check_enough(dataset: Dataset, decisive: Sequence[str]) -> None:
    for name in decisive:
        operation = operation_of(name)
        if reason := operation.refusal(dataset.schema, dataset.rows):
            raise PlanError(
                f"{operation.title} decides, and cannot be measured on {dataset.name}: {reason}.",
                "Provide more data, or weigh something else, e.g. `weights={'read': 1, 'size': 2, 'save': 1}`.",
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
    """Run only the race, without screening. All variants of the request take part, while they contend and the budget
    lasts."""
    plan = choosing_plan(request, kind, most_datasets=2)
    run, _ = measure(plan, request, replace(options, fidelity=False), folder, command, watcher, race)
    return run


def _took_s(run: Run, variant: str | None) -> float:
    """Return the seconds that a round of a variant took, or 0 if the variant has no figures."""
    own = [sample for sample in run.samples if sample.variant == variant]
    rounds = {sample.round for sample in own}
    # For a block of calls, use the total time of all calls.
    took_ns = sum(sample.figures.get("calls_ns", sample.figures.get("wall_ns", 0)) for sample in own)
    return took_ns / 1e9 / max(len(rounds), 1)


def _affordable(limits: ChoiceLimits, dataset: Dataset) -> int:
    """Return how many rows to measure, which is fewer if rows are large."""
    row_bytes = _row_bytes(dataset)
    if limits.most_bytes is None or row_bytes is None:
        return limits.most_rows
    return max(min(dataset.rows, int(limits.most_bytes / row_bytes)), min(dataset.rows, limits.fewest_rows))


def _screened(limits: ChoiceLimits, dataset: Dataset) -> int:
    if limits.screened_share == 1:
        return limits.screened_rows
    return min(limits.screened_rows, max(int(dataset.rows * limits.screened_share), limits.fewest_rows))


def _row_bytes(dataset: Dataset) -> float | None:
    """Return the bytes of a row: the size of the largest image, or the mean of the user's file. None if unknown."""
    if dataset.largest_side is not None:
        return 3 * dataset.largest_side**2
    if "size_bytes" not in dataset.source:
        return None
    return max(int(dataset.source["size_bytes"]) / max(int(dataset.source.get("input_rows", dataset.rows)), 1), 1)
