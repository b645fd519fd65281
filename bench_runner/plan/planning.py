"""Create the plan of a run from suites and a request.

Unknown names, refused settings and data that a format cannot store are found here, without loading any storage library.
If a library is missing or refuses the data, the variants that need this library are excluded. Reports list excluded
variants with the reasons. An invalid request raises PlanError.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from adapters.contract import Adapter, ImageStorage, Native, TabularFormat
from adapters.registry import Availability, is_installed
from adapters.spelling import parse
from bench_runner.conditions import Conditions
from bench_runner.errors import Failure, PlanError
from bench_runner.operations import operation_of
from bench_runner.operations.targets import Target
from bench_runner.plan.candidates import Candidate, wanted
from bench_runner.plan.chain import Chain, Excluded, Plan
from bench_runner.plan.checks import check_selection, check_something_is_chosen
from bench_runner.plan.datasets import check_data_is_used, chosen_datasets
from bench_runner.plan.selection import Selection, chosen_operations
from bench_runner.registries import registry_of
from bench_runner.request import Request
from bench_runner.suites import Suite
from bench_runner.variants import is_raw_io
from data_generator.catalogue import CATALOGUE
from data_generator.dataset import Dataset


def make_plan(suites: Sequence[Suite], request: Request, on_rows: Callable[[str, int], None] | None = None) -> Plan:
    """Return the plan for the suites under the request.

    The user's own data are read here. While reading, `on_rows` is called with the data set's name and the number of
    rows read so far. Raises PlanError for an invalid request, AdapterError for an invalid name of a variant, and
    DataError if the data cannot be read.
    """
    selection = Selection(suites, request)
    check_selection(selection)
    operations = {suite.name: chosen_operations(suite, selection.request) for suite in selection.suites}
    datasets: dict[str, Dataset] = {}
    planned: list[Chain | Excluded] = []
    for suite in selection.suites:
        for dataset in list(chosen_datasets(suite, selection.request, on_rows)):
            known = datasets.setdefault(dataset.name, dataset)
            if known.rows != dataset.rows:
                raise PlanError(
                    f"The suites use different numbers of rows of {dataset.name}: {known.rows:,} and {dataset.rows:,}.",
                    "Set `rows`, or run the suites one after the other.",
                    parameter="rows",
                )
            planned += _chains(suite, dataset, operations[suite.name], selection)
    check_data_is_used(datasets, selection.request)
    chains = dict.fromkeys(each for each in planned if isinstance(each, Chain))
    excluded = dict.fromkeys(each for each in planned if isinstance(each, Excluded))
    check_something_is_chosen(selection, [*chains, *(each.chain for each in excluded)])
    return Plan(tuple(selection.suites), datasets, tuple(chains), tuple(excluded))


def _chains(
    suite: Suite, dataset: Dataset, operations: tuple[str, ...], selection: Selection
) -> Iterator[Chain | Excluded]:
    request = selection.request
    for threads in (request.threads,) if request.threads else suite.threads:
        for candidate in selection.candidates(suite, threads):
            if not wanted(candidate.variant, request):
                continue
            for work_dir, network in itertools.product(request.work_dirs, request.networks or suite.networks):
                if network and not request.networks and not _over_networks(suite, candidate):
                    continue
                conditions = Conditions(
                    cache=request.cache,
                    threads=threads,
                    target=_target(suite, candidate.adapter, request),
                    track=candidate.track,
                    strings=request.strings,
                    work_dir=work_dir,
                    network=network,
                    service=request.service if network else "",
                )
                offered = [
                    name
                    for name in operations
                    if operation_of(name).concerns(dataset.name, network)
                    # The save is not checked, because a chain contains it only for its other operations.
                    and suite.variants.concerns(_not_spelled(candidate.variant, request), parse(name)[0])
                ]
                if not offered:
                    continue
                yield from _parts(suite, dataset, tuple(offered), candidate, conditions, request)


def _over_networks(suite: Suite, candidate: Candidate) -> bool:
    """Return whether a suite measures the candidate over networks if the user names no network."""
    return _has_services(candidate.adapter) and suite.variants.over_networks(parse(candidate.variant)[1])


def _not_spelled(variant: str, request: Request) -> dict[str, str]:
    settings = parse(variant)[1]
    return {key: value for key, value in settings.items() if not any(f"{key}=" in text for text in request.formats)}


def _has_services(adapter: Adapter) -> bool:
    """Return whether a stored copy can be read over a network. This is also True for raw I/O, because all variants are
    compared with raw I/O."""
    return adapter.is_served or is_raw_io(adapter.format)


def _target(suite: Suite, adapter: Adapter, request: Request) -> str:
    """Return the name of the target, the type of the data in memory. For tables, the request sets the target, or else
    the suite. For raw I/O, the target of tables is always 'arrow'. Other kinds of data have a single target."""
    if not suite.kind.has_columns:
        return next(iter(suite.kind.targets))
    return "arrow" if adapter.native is Native.BUFFERS else request.target or suite.target


def _parts(
    suite: Suite,
    dataset: Dataset,
    operations: tuple[str, ...],
    candidate: Candidate,
    conditions: Conditions,
    request: Request,
) -> Iterator[Chain | Excluded]:
    """Yield the chain (a save and the operations on the saved copy) with the operations that the variant can do. Yield
    every other operation as Excluded, with the reason."""
    adapter = candidate.adapter
    availability = registry_of(adapter.format).availability(type(adapter), adapter.values)
    main = next(iter(availability.versions.items()), None)
    chain = Chain(
        suite=suite.name,
        dataset=dataset.name,
        variant=candidate.variant,
        spelled=candidate.variant,
        library=" ".join(main) if main else "",
        suffix=adapter.suffix,
        mapped=adapter.values.get("mapped") == "true",
        codec=candidate.codec,
        target=Target(conditions.target, conditions.strings, "masked"),
        conditions=conditions,
        operations=operations,
    )
    failure = _failure(suite, dataset, candidate, availability, conditions, request)
    if failure is not None:
        yield Excluded(chain, failure)
        return
    failures = {name: _operation_failure(name, dataset, adapter, conditions) for name in operations}
    for name, failure in failures.items():
        if failure is not None:
            yield Excluded(replace(chain, operations=(name,)), failure)
    possible = [name for name in operations if failures[name] is None]
    if suite.fallbacks_once and not request.operations:
        possible = _fallbacks_once(possible, adapter)
    yield replace(chain, operations=tuple(possible))


def _failure(
    suite: Suite,
    dataset: Dataset,
    candidate: Candidate,
    availability: Availability,
    conditions: Conditions,
    request: Request,
) -> Failure | None:
    """Return why no operation of a chain can be measured, or None if an operation can be measured."""
    if candidate.refused is not None:
        return candidate.refused
    if not availability.installed:
        missing = ", ".join(availability.missing)
        return Failure(kind="not installed", reason=f"needs {missing}: {availability.install}")
    reason = _refusal(candidate.adapter, dataset, conditions) or _too_few(suite, dataset, candidate, request)
    return None if reason is None else Failure(kind="refused", reason=reason)


def _operation_failure(spelled: str, dataset: Dataset, adapter: Adapter, conditions: Conditions) -> Failure | None:
    operation = operation_of(spelled)
    if missing := [name for name in operation.needs if not is_installed(name)]:
        reason = f"needs {', '.join(missing)}: pip install {' '.join(missing)}"
        return Failure(kind="not installed", reason=reason)
    refused = operation.refused_under(conditions) or operation.refusal(dataset.schema, dataset.rows)
    refused = refused or operation.unfit(adapter)
    return None if refused is None else Failure(kind="refused", reason=refused)


def _fallbacks_once(operations: Sequence[str], adapter: Adapter) -> list[str]:
    """Return the operations without repeated fallbacks. A fallback, such as reading everything, replaces a call that
    the library lacks. If several operations differ only in their parameters and use a fallback, return only the first
    of these operations."""
    kept: list[str] = []
    seen: set[str] = set()
    for spelled in operations:
        operation = operation_of(spelled)
        if operation.fallback(adapter):
            if operation.name in seen:
                continue
            seen.add(operation.name)
        kept.append(spelled)
    return kept


def _too_few(suite: Suite, dataset: Dataset, candidate: Candidate, request: Request) -> str | None:
    """Return why measuring a variant on a small data set would be meaningless, or None if it is meaningful."""
    whole = CATALOGUE[parse(dataset.name)[0]].default_rows
    if whole is None or dataset.rows >= whole:
        return None
    reason = suite.variants.too_few(_not_spelled(candidate.variant, request))
    return reason and f"{reason}: measure it with all {whole:,} {suite.kind.counted}"


def _refusal(adapter: Adapter, dataset: Dataset, conditions: Conditions) -> str | None:
    if conditions.network and not _has_services(adapter):
        return "it reads local files and has no service: measure it with --network one-process"
    if conditions.network and conditions.threads == "1" and adapter.is_served:
        return "its services use all cores, however many the client uses: measure it with --threads default"
    if isinstance(adapter, ImageStorage):
        return adapter.refusal(dataset.largest_side or 0)
    return adapter.refusal(dataset.schema, dataset.rows) if isinstance(adapter, TabularFormat) else None
