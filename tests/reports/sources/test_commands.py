"""The command of each published claim measures everything that the claim compares."""

from __future__ import annotations

import shlex
from functools import cache

import pytest

from adapters.contract import Adapter
from bench_runner.operations import operation_of
from bench_runner.plan.chain import Plan
from bench_runner.registries import registry_of
from bench_runner.results.records import Conditions, changed
from format_bench.api.planning import planned
from format_bench.api.request import requested
from format_bench.commands.run import run, selected
from reports.sources.claims import SOURCES, Claim, needed_by
from reports.sources.rows import Subject

TESTED = {
    f"{source.name}/{claim.key}": claim for source in SOURCES.values() for claim in source.claims if claim.finding
}


@cache
def plan_of(command: str) -> Plan:
    """Return the plan for these command-line words."""
    verb, *words = shlex.split(command)
    assert verb == "run"
    options = dict(run.make_context(verb, words).params)
    suites = options.pop("suites")
    return planned(suites, requested(**selected(options)))


@cache
def cells_of(command: str) -> dict[Conditions, frozenset[tuple[str, str, str]]]:
    """Return the (operation, variant, data set) of each cell that the command measures, by conditions.

    Variants that are excluded only because they are not installed here count as well."""
    plan = plan_of(command)
    missing = (each.chain for each in plan.excluded if each.failure.kind == "not installed")
    found: dict[Conditions, set[tuple[str, str, str]]] = {}
    for chain in (*plan.chains, *missing):
        cells = found.setdefault(changed(chain.conditions, track=""), set())
        cells |= {(operation, chain.variant, chain.dataset) for operation in chain.operations}
    return {conditions: frozenset(cells) for conditions, cells in found.items()}


@pytest.mark.parametrize("claim", TESTED.values(), ids=TESTED)
def test_the_command_of_a_claim_measures_all_that_it_compares(claim: Claim) -> None:
    """The suite may rename or leave out a variant, operation or data set. The claim must not become untestable by that.

    Otherwise users would measure for hours and then get the same reason again."""
    assert claim.finding is not None
    needed = {
        (subject.column.operation, subject.format, subject.dataset)
        for dataset in claim.finding.datasets
        for subject in needed_by(claim.finding, dataset)
    }
    lacking = min((needed - cells for cells in cells_of(claim.command).values()), key=len)
    assert not lacking, f"{claim.command} does not measure {sorted(lacking)}"


@pytest.mark.parametrize("claim", TESTED.values(), ids=TESTED)
def test_claims_are_about_calls_that_engines_have(claim: Claim) -> None:
    """A fallback that reads everything to return a part gives no valid figure."""
    assert claim.finding is not None
    for subject in {subject for pair in claim.finding.pairs for subject in (pair.lower, pair.higher)}:
        assert not operation_of(subject.column.operation).fallback(adapter_of(subject)), subject


def adapter_of(subject: Subject) -> Adapter:
    engine, settings = registry_of(subject.format.partition("[")[0]).engine(subject.format)
    return engine(settings)
