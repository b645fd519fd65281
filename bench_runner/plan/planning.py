"""From suites and a request to chains: complete, and checked, before anything runs.

Unknown names, refused settings and data that a format cannot hold are found here, without loading any library that
stores data. Missing libraries and refusals become rows with their reason; what the user asked for wrongly raises
PlanError. This module does not know how a chain is executed.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

from adapters.contract import Adapter, ImageStorage, Native, TabularFormat
from adapters.errors import RefusedSetting
from adapters.spelling import parse, spell
from bench_runner.errors import PlanError
from bench_runner.operations.targets import Target
from bench_runner.plan import codecs
from bench_runner.registries import registry_of
from bench_runner.results.records import Conditions, Failure
from bench_runner.results.statistics import is_raw_io
from bench_runner.suites import SUITES, Suite
from data_generator.catalogue import CATALOGUE, resolve
from data_generator.dataset import Dataset
from formats.registry import FORMATS
from image_storages.registry import STORAGES

WITH_DATA = ("table", "cifar10", "imagenet100", "images")
"""The data sets that are read from what --data names."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for; the defaults are those of the command line."""

    formats: tuple[str, ...] = ()
    formats_not: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    webface: Path | None = None
    """The user's own file, which adds the data set webface; `generated_webface` adds the one that we make."""
    generated_webface: bool = False
    data: Path | None = None
    rows: int | None = None
    cache: str = "warm"
    threads: str | None = None
    """None: the suite's."""
    target: str = "pandas"
    tracks: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    strings: str = "str"
    work_dirs: tuple[str, ...] = ("default",)


@dataclass(frozen=True)
class Chain:
    """What shares one stored copy: one save, then each reading operation, then the removal.

    `spelled` builds the adapter; `variant` is how records name it, which may add what the harness does for it
    (nulls=numpy).
    """

    suite: str
    dataset: str
    variant: str
    spelled: str
    library: str
    suffix: str
    mapped: bool
    codec: str | None
    target: Target
    conditions: Conditions
    operations: tuple[str, ...]

    @property
    def is_raw_io(self) -> bool:
        """Whether this is raw I/O, which takes part in every round."""
        return is_raw_io(self.spelled)

    def label(self, operation: str | None = None) -> str:
        """How messages name it: 'tabular/save/eq/csv[engine=pandas]'."""
        middle = f"{operation}/" if operation else ""
        return f"{self.suite}/{middle}{self.dataset}/{self.variant}"


@dataclass(frozen=True)
class Excluded:
    """A chain that is not run, and why."""

    chain: Chain
    failure: Failure


@dataclass(frozen=True)
class Plan:
    """Everything that one command will measure. `excluded` chains are recorded with their reason."""

    suites: tuple[Suite, ...]
    datasets: Mapping[str, Dataset]
    chains: tuple[Chain, ...]
    excluded: tuple[Excluded, ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The spelled variants that run, each once, in the order of the plan."""
        return tuple(dict.fromkeys(chain.spelled for chain in self.chains))


def make_plan(
    suites: Sequence[Suite], request: Request, on_rows: Callable[[str, int], None] | None = None
) -> Plan:
    """The plan for the suites under the request. A user's data are read here; `on_rows` hears of which data set how
    many. Raises PlanError, and data_generator's DataError."""
    _check_patterns(request)
    _check_codecs(suites, request)
    _check_images(suites, request)
    _check_datasets(suites, request)
    datasets: dict[str, Dataset] = {}
    chains: list[Chain] = []
    excluded: list[Excluded] = []
    for suite in suites:
        operations = _chosen_operations(suite, request)
        chosen = list(_chosen_datasets(suite, request, on_rows))
        for dataset in chosen:
            known = datasets.setdefault(dataset.name, dataset)
            if known.rows != dataset.rows:
                raise PlanError(
                    f"{dataset.name}: the suites ask for {known.rows:,} and for {dataset.rows:,} rows of it\n"
                    "  say --rows, or run them one after the other"
                )
            for chain, failure in _chains(suite, dataset, operations, request):
                if failure is None:
                    chains.append(chain)
                else:
                    excluded.append(Excluded(chain, failure))
    _check_data_is_used(datasets, request)
    if all(chain.is_raw_io for chain in [*chains, *(each.chain for each in excluded)]):
        raise PlanError(
            "nothing matches --formats, --formats-not and --track together\n"
            f"  there are: {', '.join(_offered(suites))}; --list shows what a request would measure"
        )
    return Plan(tuple(suites), datasets, tuple(dict.fromkeys(chains)), tuple(dict.fromkeys(excluded)))


def _offered(suites: Sequence[Suite]) -> list[str]:
    """The names of all formats and storages that could take part."""
    names: dict[str, None] = {}
    for suite in sorted(suites, key=lambda suite: suite.images):
        own = (parse(spelled)[0] for spelled in suite.variants)
        names |= dict.fromkeys(own if suite.variants else STORAGES if suite.images else FORMATS)
    return list(names)


# --- which data sets ---------------------------------------------------------------------------------------------


def _chosen_datasets(
    suite: Suite, request: Request, on_rows: Callable[[str, int], None] | None
) -> Iterator[Dataset]:
    names = [name for pattern in request.datasets for name in _matching(suite, pattern)]
    if not request.datasets:
        names = list(suite.datasets) if request.data is None else ["images" if suite.images else "table"]
    if (request.webface is not None or request.generated_webface) and not suite.images:
        names.append("webface")
    for spelled in dict.fromkeys(names):
        name, parameters = parse(spelled)
        told = partial(on_rows, spelled) if on_rows else None
        yield resolve(
            name, parameters, rows=request.rows or suite.rows, source=_source(name, request), on_rows=told
        )


def _source(name: str, request: Request) -> Path | None:
    """The user's file or folder, for the data sets that are read from one."""
    if name == "webface":
        return request.webface
    return request.data if name in WITH_DATA else None


def _check_datasets(suites: Sequence[Suite], request: Request) -> None:
    """Every pattern must find something in one of the suites at least."""
    for pattern in request.datasets:
        if not any(_matching(suite, pattern) for suite in suites):
            names = ", ".join(suite.name for suite in suites)
            offered = ", ".join(name for suite in suites for name in (*suite.datasets, *suite.on_request))
            raise PlanError(
                f"--datasets {pattern!r} matches no data set of the suite {names}\n"
                f"  it has: {offered}; 'format-bench list datasets' says what each is"
            )


def _check_data_is_used(datasets: Iterable[str], request: Request) -> None:
    """The user's data must not be left aside without a word."""
    if request.data is not None and not any(parse(name)[0] in WITH_DATA for name in datasets):
        raise PlanError(
            f"--data {request.data} is read by none of the data sets that --datasets chooses\n"
            "  leave out --datasets, or add --datasets table (for images: images)"
        )


def _matching(suite: Suite, pattern: str) -> list[str]:
    """A spelled data set is taken as it is; a pattern searches the suite's data sets; those on request must be named
    in full, so that '.' does not start ten million rows."""
    known = _known(suite)
    if "[" in pattern and pattern.partition("[")[0] in known:
        return [pattern]
    literal = re.split(r"[|()^$]", pattern.replace("\\", ""))
    by_pattern = [name for name in suite.datasets if re.search(pattern, name)]
    found = {parse(name)[0] for name in by_pattern}
    return by_pattern + [name for name in known if name in literal and name not in found]


def _known(suite: Suite) -> Sequence[str]:
    """The data sets that a suite can measure: its own of images, or every table."""
    if suite.images:
        return (*suite.datasets, *suite.on_request)
    of_images = {name for other in SUITES.values() if other.images for name in (*other.datasets, *other.on_request)}
    return [name for name in CATALOGUE if name not in of_images]


def _chosen_operations(suite: Suite, request: Request) -> tuple[str, ...]:
    if not request.operations:
        return suite.operations
    chosen = [name for name in suite.operations if any(re.search(pattern, name) for pattern in request.operations)]
    if not chosen:
        raise PlanError(
            f"--operations {', '.join(request.operations)} matches no operation of the suite {suite.name}\n"
            f"  it has: {', '.join(suite.operations)}"
        )
    # A chain always begins with its save; without a read nothing would be verified.
    return suite.operations if chosen == ["save"] else tuple(dict.fromkeys(("save", *chosen)))


def _check_patterns(request: Request) -> None:
    for option in ("formats", "formats_not", "datasets", "operations"):
        for pattern in getattr(request, option):
            if option == "datasets" and pattern.partition("[")[0] in CATALOGUE:
                continue
            if option.startswith("formats") and _is_spelled(pattern):
                continue
            try:
                re.compile(pattern)
            except re.error as error:
                raise PlanError(
                    f"--{option.replace('_', '-')} {pattern!r} is not a regular expression: {error}\n"
                    "  a plain name such as 'parquet' is one"
                ) from None


def _check_codecs(suites: Sequence[Suite], request: Request) -> None:
    """Codecs can be chosen where codecs are the question, and tracks where they are not."""
    if (request.codecs or request.levels) and not any(suite.codecs for suite in suites):
        raise PlanError("--codecs and --levels go with the suite compression\n  run it: run compression --codecs all")
    if request.tracks and any(suite.codecs for suite in suites):
        raise PlanError("--track does not go with the suite compression\n  choose codecs by --codecs and --levels")
    for suite in suites:
        if suite.variants and set(request.tracks) - set(suite.tracks):
            raise PlanError(f"--track does not go with the suite {suite.name}\n  choose variants by --formats")
    possible = codecs.known(FORMATS)
    for name in request.codecs:
        if name not in (codecs.ALL, *possible):
            near = difflib.get_close_matches(name, possible, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PlanError(f"--codecs {name!r} is no codec{guess}\n  there are: all, {', '.join(possible)}")


def _check_images(suites: Sequence[Suite], request: Request) -> None:
    """What is about tables is refused for images."""
    for_images = [suite for suite in suites if suite.images]
    if not for_images:
        return
    for option, value, default in (
        ("--target", request.target, "pandas"),
        ("--strings", request.strings, "str"),
        ("--track", request.tracks, ()),
        ("--webface", request.webface, None),
        ("--webface", request.generated_webface, False),
    ):
        if value != default:
            raise PlanError(f"{option} is about tables, and the suite image has none\n  leave it out")


# --- which variants ----------------------------------------------------------------------------------------------


def _chains(
    suite: Suite, dataset: Dataset, operations: tuple[str, ...], request: Request
) -> Iterator[tuple[Chain, Failure | None]]:
    for track, engine, settings in _variants(suite, request):
        threads_of_suite = (request.threads,) if request.threads else suite.threads
        for threads, work_dir in itertools.product(threads_of_suite, request.work_dirs):
            adapter, variant, refused = _adapter(engine, settings, threads)
            if not _wanted(variant, request):
                continue
            conditions = Conditions(
                cache=request.cache,
                threads=threads,
                target=_target(suite, adapter, request),
                track=track,
                strings=request.strings,
                work_dir=work_dir,
            )
            chain, failure = _chain(suite, dataset, operations, adapter, conditions)
            if refused is not None:
                chain = replace(chain, variant=variant, spelled=variant, codec=settings.get("codec"))
            yield chain, refused or failure


def _target(suite: Suite, adapter: Adapter, request: Request) -> str:
    """What is in hand: the user's choice for tables, which raw I/O takes as they are kept; arrays for images."""
    if suite.images:
        return "images"
    return "arrow" if adapter.native is Native.BUFFERS else request.target


def _adapter(
    engine: type[Adapter], settings: Mapping[str, str], threads: str
) -> tuple[Adapter, str, Failure | None]:
    """The adapter and how it is spelled; for refused settings, the engine's default one, the spelling, and why."""
    try:
        adapter = engine(settings, threads=1 if threads == "1" else None)
    except RefusedSetting as refused:
        variant = spell(engine.format, {"engine": engine.engine, **settings})
        return engine(), variant, Failure(kind="refused", reason=str(refused))
    return adapter, adapter.variant, None


def _variants(suite: Suite, request: Request) -> Iterator[tuple[str, type[Adapter], Mapping[str, str]]]:
    """The track, engine and settings of everything that takes part; some settings may still be refused."""
    if suite.images:
        yield from _storages(suite, request)
        return
    if suite.variants:
        yield from _spelled(suite)
        return
    if not suite.codecs:
        yield from _engines(request.tracks or suite.tracks)
        return
    (track,) = suite.tracks
    yield track, FORMATS.engines("raw-io")[0], {}
    for name in FORMATS if request.codecs else suite.formats:
        engine = FORMATS.engines(name)[0]
        for settings in codecs.choices(engine, request.codecs or suite.codecs, request.levels or None):
            yield track, engine, settings


def _spelled(suite: Suite) -> Iterator[tuple[str, type[TabularFormat], Mapping[str, str]]]:
    """The variants that a suite spells in full, and raw I/O."""
    (track,) = suite.tracks
    for spelled in ("raw-io", *suite.variants):
        yield track, *FORMATS.engine(spelled)


def _engines(tracks: Iterable[str]) -> Iterator[tuple[str, type[TabularFormat], Mapping[str, str]]]:
    """Each track's engines with their settings; raw I/O, which has no track, comes with the first.

    Beside a plain call stand the settings that its engine names for that, and beside a call that loses its lossless
    sibling, where one exists (rule 12).
    """
    for position, track in enumerate(tracks):
        for name in FORMATS:
            engine = FORMATS.engines(name)[0]
            if is_raw_io(name):
                if position == 0:
                    yield track, engine, {}
            elif _takes_part(engine, track):
                settings = _track_settings(engine, track)
                yield track, engine, settings
                if track == "plain":
                    yield from ((track, engine, beside) for beside in engine.beside)
                for sibling in dict.fromkeys(loss.lossless for loss in engine(settings).losses if loss.lossless):
                    yield track, *FORMATS.engine(sibling)


def _storages(suite: Suite, request: Request) -> Iterator[tuple[str, type[Adapter], Mapping[str, str]]]:
    """The storages of the suite, or all of them for --formats to choose from; raw I/O always."""
    (track,) = suite.tracks
    for name in STORAGES:
        if not (is_raw_io(name) or request.formats or name in suite.formats):
            continue
        engine = STORAGES.engines(name)[0]
        for settings in dict.fromkeys(tuple(each.items()) for each in (engine.plain, *engine.beside)):
            yield track, engine, dict(settings)


def _takes_part(engine: type[TabularFormat], track: str) -> bool:
    if track == "plain":
        return True
    if track == "default":
        return dict(engine.library_default) != dict(engine.plain)
    return bool(engine.equal)


def _track_settings(engine: type[TabularFormat], track: str) -> Mapping[str, str]:
    return {"plain": engine.plain, "default": engine.library_default, "equal": engine.equal}[track]


def _wanted(variant: str, request: Request) -> bool:
    """Raw I/O stays whatever is chosen: every figure is shown as a multiple of it."""
    if is_raw_io(variant):
        return True
    if request.formats and not any(_names(pattern, variant) for pattern in request.formats):
        return False
    return not any(_names(pattern, variant) for pattern in request.formats_not)


def _names(pattern: str, variant: str) -> bool:
    """A variant spelled in full, as reports print it, names itself alone: its brackets mean something else in a regular
    expression, or nothing that is one."""
    if not _is_spelled(pattern):
        return re.search(pattern, variant) is not None
    return variant in (pattern, _honoured(pattern))


@cache
def _honoured(pattern: str) -> str:
    """How an adapter with these settings spells itself: with its engine and whatever else is always named."""
    try:
        engine, settings = registry_of(pattern.partition("[")[0]).engine(pattern)
        return engine(settings).variant
    except RefusedSetting:
        return pattern


def _is_spelled(pattern: str) -> bool:
    """Whether this is a format's or storage's name with settings: 'parquet[engine=pyarrow,codec=none]'."""
    name, bracket, settings = pattern.partition("[")
    known = name in FORMATS.entries or name in STORAGES.entries
    return known and bool(bracket) and settings.endswith("]") and "=" in settings


def _chain(
    suite: Suite, dataset: Dataset, operations: tuple[str, ...], adapter: Adapter, conditions: Conditions
) -> tuple[Chain, Failure | None]:
    """The chain, and why it is not run when that can be known already."""
    availability = registry_of(adapter.format).availability(type(adapter), adapter.values)
    main = next(iter(availability.versions.items()), None)
    chain = Chain(
        suite=suite.name,
        dataset=dataset.name,
        variant=adapter.variant,
        spelled=adapter.variant,
        library=" ".join(main) if main else "",
        suffix=adapter.suffix,
        mapped=adapter.values.get("mapped") == "true",
        codec=str(adapter.values["codec"]) if "codec" in adapter.values else None,
        target=Target(conditions.target, conditions.strings, "masked"),
        conditions=conditions,
        operations=operations,
    )
    if not availability.installed:
        missing = ", ".join(availability.missing)
        return chain, Failure(kind="not installed", reason=f"needs {missing}: {availability.install}")
    reason = _refusal(adapter, dataset)
    return chain, None if reason is None else Failure(kind="refused", reason=reason)


def _refusal(adapter: Adapter, dataset: Dataset) -> str | None:
    if isinstance(adapter, ImageStorage):
        return adapter.refusal(dataset.largest_side or 0)
    assert isinstance(adapter, TabularFormat)
    return adapter.refusal(dataset.schema, dataset.rows)


def with_null_variants(plan: Plan, columns_with_nulls: Mapping[str, frozenset[str]]) -> Plan:
    """Rule 8: an engine that refuses Int64 and boolean says so, and is measured with nulls=numpy apart.

    `columns_with_nulls` names, for each data set, the columns in which a value is missing: known once the data are
    made, which `--list` does not do.
    """
    chains: list[Chain] = []
    excluded = list(plan.excluded)
    for chain in plan.chains:
        if chain.target.is_images:
            chains.append(chain)
            continue
        engine, _ = FORMATS.engine(chain.spelled)
        schema = plan.datasets[chain.dataset].schema
        masked = [
            column.name
            for column in schema
            if column.name in columns_with_nulls[chain.dataset]
            and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))
        ]
        if engine.takes_masked or not masked:
            chains.append(chain)
            continue
        reason = (
            f"{engine.engine} refuses the dtypes Int64 and boolean, which {len(masked)} columns need "
            f"({', '.join(masked[:3])}); measured with nulls=numpy"
        )
        excluded.append(Excluded(chain, Failure(kind="refused", reason=reason)))
        chains.append(with_numpy_nulls(chain))
    return replace(plan, chains=tuple(chains), excluded=tuple(excluded))


def with_numpy_nulls(chain: Chain) -> Chain:
    """The variant that `with_null_variants` puts beside a chain whose engine refuses masked columns."""
    name, settings = parse(chain.variant)
    variant = spell(name, {**settings, "nulls": "numpy"})
    return replace(chain, variant=variant, target=replace(chain.target, nulls="numpy"))
