"""Make the lines that `format-bench list` prints: suites, formats, storages, stores, data sets, cells.

No format library is imported. The metadata of installed packages show which libraries are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from textwrap import wrap
from typing import Any

from adapters.contract import TabularFormat
from adapters.predicate import Kind
from adapters.registry import Registry
from bench_runner.suites import SUITES
from bench_runner.suites.sweep import TRAITS
from data_generator.catalogue import CATALOGUE
from document_stores.registry import DOCUMENT_STORES
from formats.registry import FORMATS
from image_storages.registry import STORAGES

WIDTH = 100
_EVERY_CONDITION = f" ({', '.join(kind.value for kind in Kind)})"


def _suites() -> Iterator[str]:
    from bench_runner.plan.candidates import names_left_out

    for suite in SUITES.values():
        yield f"{suite.name}: {suite.question}"
        yield from _paragraph("operations", ", ".join(suite.operations))
        if suite.operations_on_request:
            yield from _paragraph("operations on request", ", ".join(suite.operations_on_request))
        yield from _paragraph("data sets", ", ".join(suite.datasets))
        yield from _paragraph("on request", ", ".join(suite.on_request))
        yield from _paragraph("tracks", ", ".join(suite.tracks))
        yield from _paragraph("calls", ", ".join(suite.variants.spelled)) if suite.variants.spelled else ()
        yield from _paragraph("threads", ", ".join(suite.threads)) if len(suite.threads) > 1 else ()
        for choice, reason in suite.reasons.items():
            yield from _paragraph(choice, reason)
        yield from _paragraph("--quick", suite.quick.reason)
        for name, trait in TRAITS.items() if suite.operations_over_data else ():
            yield from _paragraph(f"--over {name}", f"{trait.meaning}: {', '.join(trait.points)}")
        left_out = names_left_out(suite)
        for reason in dict.fromkeys(left_out.values()):
            names = ", ".join(name for name in left_out if left_out[name] == reason)
            yield from _paragraph(f"without {names}", reason)


def _engines(registry: Registry[Any]) -> Iterator[str]:
    for name in registry:
        shown = None
        for engine in registry.engines(name):
            here = registry.availability(engine)
            if here.installed:
                state = ", ".join(f"{library} {version}" for library, version in here.versions.items())
            else:
                state = f"not installed: {here.install}"
            # `engine.engine` is empty if the format has only one engine, or if its settings name the libraries.
            call = f"{engine.title} by {engine.engine}" if engine.engine else engine.title
            yield f"{name:<12} {call}; {state}"
            if engine.maturity != shown:
                shown = engine.maturity
                yield from _paragraph(shown.stage.value, f"{shown.reason} (ours)" if shown.ours else shown.reason)
            if issubclass(engine, TabularFormat):
                yield from _calls(engine())
            for key, setting in engine.settings.items():
                default = "" if setting.default is None else f" (default {setting.default})"
                yield from _paragraph(key, f"{setting.allowed_text()}{default}: {setting.meaning}")
            for choice, besides in engine.besides_for.items():
                yield from _paragraph(choice, f"needs {', '.join(besides.distributions)}")


def _calls(adapter: TabularFormat) -> Iterator[str]:
    """Yield lines with the calls that save and read, and with the other operations for which the adapter has a call."""
    calls = adapter.calls
    for name, call in (("save", calls.save), ("read", calls.read)) if calls is not None else ():
        yield from _paragraph(name, call.replace("{held}", "table").replace("{path}", "path"))
    others = [*adapter.offers.names, *([] if isinstance(adapter.parts, str) else ["in partitions"])]
    if others:
        yield from _paragraph("also", ", ".join(others).replace(_EVERY_CONDITION, ""))


def _datasets() -> Iterator[str]:
    for name, entry in CATALOGUE.items():
        yield f"{name:<15} {entry.title}"
        yield from _paragraph("", entry.purpose)
        for parameter in entry.parameters:
            yield from _paragraph(parameter.name, f"{parameter.meaning} (default {parameter.default})")


def _cells() -> Iterator[str]:
    from bench_runner.plan.planning import make_plan
    from bench_runner.request import Request

    # One plan per suite, because suites may use different numbers of rows of the same data set.
    for suite in SUITES.values():
        for chain in make_plan([suite], Request()).chains:
            for operation in chain.operations:
                yield chain.label(operation)


def _paragraph(head: str, text: str) -> list[str]:
    whole = f"{head}: {text}" if head else text
    return wrap(whole, WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)


LISTINGS: Mapping[str, Callable[[], Iterator[str]]] = {
    "suites": _suites,
    "formats": partial(_engines, FORMATS),
    "storages": partial(_engines, STORAGES),
    "stores": partial(_engines, DOCUMENT_STORES),
    "datasets": _datasets,
    "cells": _cells,
}
