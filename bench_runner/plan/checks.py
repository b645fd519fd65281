"""Check a request. Each check raises PlanError, whose message says what is allowed and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from msgspec.structs import replace as changed

from bench_runner.errors import PlanError
from bench_runner.plan import patterns
from bench_runner.plan.candidates import candidates, is_chosen, names_left_out
from bench_runner.plan.chain import Chain
from bench_runner.plan.datasets import check_datasets
from bench_runner.plan.selection import Selection
from bench_runner.registries import REGISTRIES, all_engines
from bench_runner.request import Request
from bench_runner.suites import CODECS, Suite, codecs
from bench_runner.variants import is_raw_io, variant_of
from data_generator.catalogue import CATALOGUE
from formats.registry import FORMATS


def check_selection(selection: Selection) -> None:
    """Check everything that can be checked without data."""
    suites, request = selection.suites, selection.request
    _check_patterns(request)
    _check_codecs(suites, request)
    _check_not_tables(suites, request)
    check_datasets(suites, request)
    _check_formats(selection)


def check_something_is_chosen(selection: Selection, planned: Iterable[Chain]) -> None:
    """Check that at least one variant other than raw I/O is chosen."""
    request = selection.request
    if not any(is_chosen(each.variant, request.formats, request.formats_not) for each in planned if not each.is_raw_io):
        offered = _offered(selection.suites)
        raise PlanError(
            "No variant matches `formats`, `formats_not` and `tracks` together.",
            f"There are {', '.join(offered)}.",
            parameter="formats",
            given=request.formats,
            allowed=offered,
        )


def _offered(suites: Sequence[Suite]) -> list[str]:
    """Return the names of all formats and storages that the user can choose. Raw I/O always takes part."""
    names: dict[str, None] = {}
    for suite in sorted(suites, key=lambda suite: not suite.kind.has_columns):
        left_out = names_left_out(suite)
        names |= {name: None for name in REGISTRIES[suite.kind.name] if not (name in left_out or is_raw_io(name))}
    return list(names)


def _check_patterns(request: Request) -> None:
    for parameter in ("formats", "formats_not", "operations"):
        patterns.check(parameter, getattr(request, parameter))
    for text in request.datasets:
        if text.partition("[")[0] not in CATALOGUE:
            patterns.check("datasets", [text])


def _check_codecs(suites: Sequence[Suite], request: Request) -> None:
    """Check that codecs are chosen only in suites that compare codecs, and tracks only in other suites."""
    if (request.codecs or request.levels) and not any(CODECS in suite.tracks for suite in suites):
        raise PlanError(
            "`codecs` and `levels` apply to the suite compression only.",
            "Choose that suite, or omit them.",
            parameter="codecs" if request.codecs else "levels",
            given=request.codecs or request.levels,
        )
    if request.tracks and any(CODECS in suite.tracks for suite in suites):
        raise PlanError(
            "`tracks` does not apply to the suite compression.",
            "Choose codecs by `codecs` and `levels`.",
            parameter="tracks",
            given=request.tracks,
        )
    for suite in suites:
        if suite.variants.spelled and set(request.tracks) - set(suite.tracks):
            raise PlanError(
                f"`tracks` does not apply to the suite {suite.name}, which has its own list of variants.",
                "Choose variants from this list by `formats`.",
                parameter="tracks",
                given=request.tracks,
            )
    possible = codecs.known(FORMATS) if request.codecs else ()
    for name in request.codecs:
        if name not in (codecs.ALL, *possible):
            near = difflib.get_close_matches(name, possible, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PlanError(
                f"`codecs` has the unknown codec {name!r}{guess}.",
                f"Choose among {codecs.ALL}, {', '.join(possible)}.",
                parameter="codecs",
                given=name,
                allowed=(codecs.ALL, *possible),
            )


def _check_not_tables(suites: Sequence[Suite], request: Request) -> None:
    """Check that options for tables are not used with images or documents."""
    others = [suite for suite in suites if not suite.kind.has_columns]
    if not others:
        return
    for parameter, value, default in (
        ("target", request.target, None),
        ("strings", request.strings, "str"),
        ("tracks", request.tracks, ()),
        ("webface", request.webface, None),
        ("webface", request.generated_webface, False),
    ):
        if value != default:
            raise PlanError(
                f"`{parameter}` applies to tables only, and the suite {others[0].name} measures {others[0].kind.name}.",
                "Omit it.",
                parameter=parameter,
                given=value,
            )


def _check_formats(selection: Selection) -> None:
    """Check that every alternative of `formats` matches a variant of a selected suite, and that every alternative of
    `formats_not` matches any known variant."""
    suites, request = selection.suites, selection.request
    threads = request.threads or "default"
    found = [candidate.variant for suite in suites for candidate in selection.candidates(suite, threads)]
    lost = [text for text in patterns.alternatives(request.formats) if not _finds(text, found)]
    if not lost and not request.formats_not:
        return
    # Only needed for the error message, because this loads the modules of all formats.
    whole = changed(request, formats=())
    offered = [candidate.variant for suite in suites for candidate in candidates(suite, whole, threads)] + found
    for text in lost:
        if not _finds(text, offered):
            _refuse_left_out(suites, text)
    names = list(dict.fromkeys(variant_of(variant).format_name for variant in offered if not is_raw_io(variant)))
    patterns.check_found("formats", request.formats, offered, names)
    everything = [engine().variant for _, engine in all_engines()]
    patterns.check_found("formats_not", request.formats_not, [*offered, *everything], names)


def _finds(text: str, variants: Iterable[str]) -> bool:
    return any(patterns.matches(text, variant) for variant in variants)


def _refuse_left_out(suites: Sequence[Suite], text: str) -> None:
    name = text.strip("^$")
    for suite in suites:
        reason = names_left_out(suite).get(name)
        if reason is not None:
            spelled = REGISTRIES[suite.kind.name].engines(name)[0]().variant
            raise PlanError(
                f"`formats`: the suite {suite.name} leaves {text!r} out: {reason}.",
                f"To include it anyway, spell it in full, e.g. `formats={spelled!r}`.",
                parameter="formats",
                given=text,
            )
