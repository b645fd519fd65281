"""Reduce a suite for a quick run of one round. What the user names in the request is not reduced."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bench_runner.request import Request
from bench_runner.suites import Rule, Suite


def quickly(suite: Suite, request: Request) -> Suite:
    """Return the suite as measured in one quick round, or unchanged if the request is not quick."""
    if not request.quick:
        return suite
    quick = suite.quick
    return replace(
        suite,
        rows=quick.rows or suite.rows,
        datasets=suite.datasets if request.datasets else quick.datasets or suite.datasets,
        operations=suite.operations if request.operations else quick.operations or suite.operations,
        networks=quick.networks or suite.networks,
        threads=quick.threads or suite.threads,
        variants=suite.variants if request.formats else _without(suite.variants, quick.without),
    )


def _without(rule: Rule, variants: Collection[str]) -> Rule:
    return replace(rule, spelled=tuple(each for each in rule.spelled if each not in variants))
