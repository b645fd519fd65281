"""The reference run and its tables, read once for all pages: that takes seconds, and pages ask dozens of times.

It knows no page.
"""

from __future__ import annotations

from functools import cache

from bench_runner.results.records import Run
from bench_runner.results.reference import PLACE, reference_runs
from reports.analysis.tables import Table, tables

_KNOWN: dict[int, tuple[Run, list[Table]]] = {}
"""The run is held with its tables, so that no other comes to have its identity."""


@cache
def runs() -> tuple[Run, ...]:
    """All of the reference run; nothing where there is none."""
    return tuple(reference_runs()) if PLACE.exists() else ()


def tables_of(run: Run) -> list[Table]:
    """The tables of a run."""
    if id(run) not in _KNOWN:
        _KNOWN[id(run)] = run, list(tables(run))
    return _KNOWN[id(run)][1]
