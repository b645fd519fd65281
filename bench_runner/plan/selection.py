"""Determine the suites, candidate variants and operations of a request."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from adapters.spelling import parse
from bench_runner.errors import PlanError
from bench_runner.operations import OPERATIONS, SAVE, operation_of
from bench_runner.plan import patterns
from bench_runner.plan.candidates import Candidate, candidates
from bench_runner.plan.quick import quickly
from bench_runner.plan.sweeping import swept
from bench_runner.request import Request
from bench_runner.suites import Suite


class Selection:
    """The suites of a request, and their candidate variants before the request's filters are applied. The candidates of
    a suite are determined once and then kept."""

    def __init__(self, suites: Sequence[Suite], request: Request) -> None:
        """Create the selection. Raises PlanError if `request.over` names a property of the data (trait) that cannot be
        varied."""
        self.request = swept(suites, request)
        self.suites = [quickly(suite, self.request) for suite in suites]
        self._candidates: dict[tuple[str, str], Sequence[Candidate]] = {}

    def candidates(self, suite: Suite, threads: str) -> Sequence[Candidate]:
        """Return the candidates of a suite. Raises the errors of bench_runner.plan.candidates.candidates."""
        if (suite.name, threads) not in self._candidates:
            self._candidates[suite.name, threads] = candidates(suite, self.request, threads)
        return self._candidates[suite.name, threads]


def chosen_operations(suite: Suite, request: Request) -> tuple[str, ...]:
    """Return the full names of the operations of a suite under a request, in the order of execution. The save comes
    first, because reading needs a stored copy. Operations that change the copy, e.g. by adding an index, come last, so
    that other operations cannot profit from the change."""
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
                f"`operations`: {text!r} matches no operation of the suite {suite.name}{guess}.",
                f"It has {', '.join(offered)}.",
                parameter="operations",
                given=text,
                allowed=offered,
            )
        chosen += found
    for spelled in chosen:
        if not _fits(suite, spelled):
            about = " and ".join(kind.name for kind in operation_of(spelled).kinds or ())
            raise PlanError(
                f"`operations`: {spelled} applies to {about}, but the suite {suite.name} measures {suite.kind.name}.",
                f"This suite has {', '.join(offered)}.",
                parameter="operations",
                given=spelled,
                allowed=offered,
            )
    in_order = [spelled for spelled in offered if spelled in chosen]
    return _traces_last(dict.fromkeys((SAVE, *in_order, *chosen)))


def _traces_last(spelled: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(spelled, key=lambda each: operation_of(each).leaves_traces))


def _fits(suite: Suite, spelled: str) -> bool:
    """Return whether an operation applies to the kind of data that a suite stores."""
    kinds = operation_of(spelled).kinds
    return kinds is None or suite.kind in kinds


def _means(text: str, spelled: str) -> bool:
    if text in OPERATIONS:
        return parse(spelled)[0] == text
    return not patterns.is_spelled(text) and patterns.is_found(text, spelled)
