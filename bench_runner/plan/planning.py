"""From suites and a request to chains: complete, and checked, before anything runs.

Unknown names, refused settings and data that a format cannot hold are found here, without loading any library that
stores data. Missing libraries and refusals become rows with their reason; what the user asked for wrongly raises
PlanError. This module does not know how a chain is executed.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from adapters.contract import Adapter, ImageStorage, Native, TabularFormat
from adapters.registry import is_installed
from adapters.spelling import parse
from bench_runner.conditions import Conditions
from bench_runner.errors import Failure, PlanError
from bench_runner.operations import OPERATIONS, SAVE, operation_of
from bench_runner.operations.targets import Target
from bench_runner.plan import patterns
from bench_runner.plan.candidates import Candidate, candidates, is_chosen, names_left_out, wanted
from bench_runner.plan.chain import Chain, Excluded, Plan
from bench_runner.plan.datasets import check_data_is_used, check_datasets, chosen_datasets
from bench_runner.plan.quick import quickly
from bench_runner.plan.request import Request
from bench_runner.plan.sweeping import swept
from bench_runner.registries import REGISTRIES, all_engines, registry_of
from bench_runner.suites import CODECS, Suite, codecs
from bench_runner.variants import is_raw_io, variant_of
from data_generator.catalogue import CATALOGUE
from data_generator.dataset import Dataset
from formats.registry import FORMATS


def make_plan(suites: Sequence[Suite], request: Request, on_rows: Callable[[str, int], None] | None = None) -> Plan:
    """The plan for the suites under the request. A user's data are read here; `on_rows` hears of which data set how
    many. Raises PlanError, AdapterError for a variant that the user spells wrongly, and data_generator's DataError."""
    request = swept(suites, request)
    suites = [quickly(suite, request) for suite in suites]
    _check_patterns(request)
    _check_codecs(suites, request)
    _check_not_tables(suites, request)
    check_datasets(suites, request)
    by_name = {suite.name: suite for suite in suites}

    @cache
    def offered(suite: str, threads: str) -> Sequence[Candidate]:
        return candidates(by_name[suite], request, threads)

    _check_formats(suites, request, offered)
    operations = {suite.name: chosen_operations(suite, request) for suite in suites}
    datasets: dict[str, Dataset] = {}
    chains: list[Chain] = []
    excluded: list[Excluded] = []
    for suite in suites:
        chosen = list(chosen_datasets(suite, request, on_rows))
        for dataset in chosen:
            known = datasets.setdefault(dataset.name, dataset)
            if known.rows != dataset.rows:
                raise PlanError(
                    f"{dataset.name}: the suites ask for {known.rows:,} and for {dataset.rows:,} rows of it\n"
                    "  say --rows, or run them one after the other"
                )
            for found in _chains(suite, dataset, operations[suite.name], request, offered):
                if isinstance(found, Excluded):
                    excluded.append(found)
                else:
                    chains.append(found)
    check_data_is_used(datasets, request)
    planned = [*chains, *(each.chain for each in excluded)]
    if not any(is_chosen(each.variant, request.formats, request.formats_not) for each in planned if not each.is_raw_io):
        raise PlanError(
            "nothing matches --formats, --formats-not and --track together\n"
            f"  there are: {', '.join(_offered(suites))}; --list shows what a request would measure"
        )
    return Plan(tuple(suites), datasets, tuple(dict.fromkeys(chains)), tuple(dict.fromkeys(excluded)))


def _offered(suites: Sequence[Suite]) -> list[str]:
    """The names of all formats and storages that could take part. Raw I/O comes with them by itself."""
    names: dict[str, None] = {}
    for suite in sorted(suites, key=lambda suite: not suite.kind.has_columns):
        left_out = names_left_out(suite)
        names |= {name: None for name in REGISTRIES[suite.kind.name] if not (name in left_out or is_raw_io(name))}
    return list(names)


Offered = Callable[[str, str], Sequence[Candidate]]
"""The candidates of a suite, before the user's choice: (name of the suite, threads). Computed once for a plan."""


def _check_formats(suites: Sequence[Suite], request: Request, offer: Offered) -> None:
    """Every alternative of --formats must find a variant in one of the suites; of --formats-not one that exists."""
    threads = request.threads or "default"
    offered = [candidate.variant for suite in suites for candidate in offer(suite.name, threads)]
    asked = patterns.alternatives(request.formats)
    found = all(any(patterns.matches(text, variant) for variant in offered) for text in asked)
    if found and not request.formats_not:
        return
    # For the error message only: this loads the modules of all formats.
    whole = replace(request, formats=())
    offered[:0] = [candidate.variant for suite in suites for candidate in candidates(suite, whole, threads)]
    names = list(dict.fromkeys(variant_of(variant).format_name for variant in offered if not is_raw_io(variant)))
    for text in asked:
        name = text.strip("^$")
        for suite in suites:
            reason = names_left_out(suite).get(name)
            registry = REGISTRIES[suite.kind.name]
            if reason is not None and not any(patterns.matches(text, variant) for variant in offered):
                raise PlanError(
                    f"--formats {text!r}: the suite {suite.name} leaves it out: {reason}\n"
                    f"  spell it to have it all the same, e.g. --formats '{registry.engines(name)[0]().variant}'"
                )
    more = f"there are: {', '.join(names)}; --list shows what a request would measure"
    patterns.check_found("--formats", request.formats, offered, names, more)
    everything = [engine().variant for _, engine in all_engines()]
    patterns.check_found("--formats-not", request.formats_not, [*offered, *everything], names, more)


# --- which operations ---------------------------------------------------------------------------------------------


def chosen_operations(suite: Suite, request: Request) -> tuple[str, ...]:
    """Spelled, the save first: whatever reads needs a stored copy. What leaves traces in that copy comes last: whatever
    came behind it would be answered with their help, and be called by a name that says it was not."""
    if not request.operations:
        return _traces_last(suite.operations)
    offered = (*suite.operations, *suite.operations_on_request)
    chosen: list[str] = []
    for text in patterns.alternatives(request.operations):
        found = [spelled for spelled in offered if _means(text, spelled)]
        if patterns.is_spelled(text) or (not found and text in OPERATIONS):
            found = [operation_of(text).spelled]
        if not found:
            near = difflib.get_close_matches(text.strip("^$").partition("[")[0], OPERATIONS, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PlanError(
                f"--operations {text!r} matches no operation of the suite {suite.name}{guess}\n"
                f"  it has: {', '.join(offered)}"
            )
        chosen += found
    for spelled in chosen:
        if not _fits(suite, spelled):
            about = " and ".join(kind.name for kind in operation_of(spelled).kinds or ())
            raise PlanError(
                f"--operations {spelled}: is about {about}, and the suite {suite.name} has {suite.kind.name}\n"
                f"  it has: {', '.join(offered)}"
            )
    in_order = [spelled for spelled in offered if spelled in chosen]
    return _traces_last(dict.fromkeys((SAVE, *in_order, *chosen)))


def _traces_last(spelled: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(spelled, key=lambda each: operation_of(each).leaves_traces))


def _fits(suite: Suite, spelled: str) -> bool:
    """Whether an operation can be done with what a suite stores."""
    kinds = operation_of(spelled).kinds
    return kinds is None or suite.kind in kinds


def _means(text: str, spelled: str) -> bool:
    if text in OPERATIONS:
        return parse(spelled)[0] == text
    return not patterns.is_spelled(text) and patterns.is_found(text, spelled)


# --- what is asked for wrongly -------------------------------------------------------------------------------------


def _check_patterns(request: Request) -> None:
    for option in ("formats", "formats_not", "operations"):
        patterns.check(f"--{option.replace('_', '-')}", getattr(request, option))
    for text in request.datasets:
        if text.partition("[")[0] not in CATALOGUE:
            patterns.check("--datasets", [text])


def _check_codecs(suites: Sequence[Suite], request: Request) -> None:
    """Codecs can be chosen where codecs are the question, and tracks where they are not."""
    if (request.codecs or request.levels) and not any(CODECS in suite.tracks for suite in suites):
        raise PlanError("--codecs and --levels go with the suite compression\n  run it: run compression --codecs all")
    if request.tracks and any(CODECS in suite.tracks for suite in suites):
        raise PlanError("--track does not go with the suite compression\n  choose codecs by --codecs and --levels")
    for suite in suites:
        if suite.variants.spelled and set(request.tracks) - set(suite.tracks):
            raise PlanError(f"--track does not go with the suite {suite.name}\n  choose variants by --formats")
    possible = codecs.known(FORMATS) if request.codecs else ()
    for name in request.codecs:
        if name not in (codecs.ALL, *possible):
            near = difflib.get_close_matches(name, possible, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PlanError(f"--codecs {name!r} is no codec{guess}\n  there are: all, {', '.join(possible)}")


def _check_not_tables(suites: Sequence[Suite], request: Request) -> None:
    """What is about tables is refused for images and documents."""
    others = [suite for suite in suites if not suite.kind.has_columns]
    if not others:
        return
    for option, value, default in (
        ("--target", request.target, None),
        ("--strings", request.strings, "str"),
        ("--track", request.tracks, ()),
        ("--webface", request.webface, None),
        ("--webface", request.generated_webface, False),
    ):
        if value != default:
            raise PlanError(f"{option} is about tables, and the suite {others[0].name} has none\n  leave it out")


# --- which chains ------------------------------------------------------------------------------------------------


def _chains(
    suite: Suite, dataset: Dataset, operations: tuple[str, ...], request: Request, offer: Offered
) -> Iterator[Chain | Excluded]:
    threads_of_suite = (request.threads,) if request.threads else suite.threads
    for threads in threads_of_suite:
        for candidate in offer(suite.name, threads):
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
                    and _is_changed(suite, candidate.variant, name, request)
                ]
                if not offered:
                    continue
                yield from _parts(suite, dataset, tuple(offered), candidate, conditions, request)


def _over_networks(suite: Suite, candidate: Candidate) -> bool:
    """Whether a suite measures it through networks where nobody asks for them."""
    settings = parse(candidate.variant)[1]
    return _has_services(candidate.adapter) and suite.variants.over_networks(settings)


def _is_changed(suite: Suite, variant: str, operation: str, request: Request) -> bool:
    """Whether what the variant spells can change this operation; the save that a chain needs is in its service then."""
    return suite.variants.concerns(_not_spelled(variant, request), parse(operation)[0])


def _not_spelled(variant: str, request: Request) -> dict[str, str]:
    """The settings of a variant that the user does not ask for by name."""
    settings = parse(variant)[1]
    return {key: value for key, value in settings.items() if not any(f"{key}=" in text for text in request.formats)}


def _has_services(adapter: Adapter) -> bool:
    """Whether something can lie between who asks and the copy; raw I/O is what all are set against."""
    return adapter.is_served or is_raw_io(adapter.format)


def _target(suite: Suite, adapter: Adapter, request: Request) -> str:
    """What is in hand: the user's choice for tables, which raw I/O takes as they are kept; arrays for images."""
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
    """The chain with the operations that can be done, and those that cannot with the reason, as far as can be known
    already: one that is refused costs its own cell alone."""
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
    if candidate.refused is not None:
        yield Excluded(chain, candidate.refused)
    elif not availability.installed:
        missing = ", ".join(availability.missing)
        yield Excluded(chain, Failure(kind="not installed", reason=f"needs {missing}: {availability.install}"))
    elif (reason := _refusal(adapter, dataset, conditions) or _too_few(suite, dataset, candidate, request)) is not None:
        yield Excluded(chain, Failure(kind="refused", reason=reason))
    else:
        lacking = {name: reason for name in operations if (reason := _missing(name))}
        for name, reason in lacking.items():
            yield Excluded(replace(chain, operations=(name,)), Failure(kind="not installed", reason=reason))
        installed = [name for name in operations if name not in lacking]
        refused = {name: _operation_refusal(name, dataset, adapter, conditions) for name in installed}
        for name, reason in refused.items():
            if reason is not None:
                yield Excluded(replace(chain, operations=(name,)), Failure(kind="refused", reason=reason))
        possible = [name for name, reason in refused.items() if reason is None]
        if suite.fallbacks_once and not request.operations:
            possible = _fallbacks_once(possible, adapter)
        yield replace(chain, operations=tuple(possible))


def _fallbacks_once(operations: Sequence[str], adapter: Adapter) -> list[str]:
    """Of each operation that the adapter has no call for, the first spelling alone."""
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


def _missing(spelled: str) -> str | None:
    """What has to be installed for an operation, and how."""
    missing = [name for name in operation_of(spelled).needs if not is_installed(name)]
    return f"needs {', '.join(missing)}: pip install {' '.join(missing)}" if missing else None


def _operation_refusal(spelled: str, dataset: Dataset, adapter: Adapter, conditions: Conditions) -> str | None:
    operation = operation_of(spelled)
    return (
        operation.refused_under(conditions)
        or operation.refusal(dataset.schema, dataset.rows)
        or operation.unfit(adapter)
    )


def _too_few(suite: Suite, dataset: Dataset, candidate: Candidate, request: Request) -> str | None:
    """Why a variant shows nothing on as many rows as were asked for."""
    whole = CATALOGUE[parse(dataset.name)[0]].default_rows
    if whole is None or dataset.rows >= whole:
        return None
    reason = suite.variants.too_few(_not_spelled(candidate.variant, request))
    return reason and f"{reason}: measure it with all {whole:,} {suite.kind.counted}"


def _refusal(adapter: Adapter, dataset: Dataset, conditions: Conditions) -> str | None:
    if conditions.network and not _has_services(adapter):
        return "it reads files of its own machine, and no service: measure it with --network one-process"
    if conditions.network and conditions.threads == "1" and adapter.is_served:
        return "its services have all cores, whatever the client has: measure it with --threads default"
    if isinstance(adapter, ImageStorage):
        return adapter.refusal(dataset.largest_side or 0)
    return adapter.refusal(dataset.schema, dataset.rows) if isinstance(adapter, TabularFormat) else None
