"""Invented chains, samples and sessions, for tests that execute nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench_runner.conditions import Conditions
from bench_runner.operations.targets import Target
from bench_runner.plan.chain import Chain
from bench_runner.results.information import RunInfo
from bench_runner.results.records import Sample
from bench_runner.run.options import Options
from bench_runner.run.resume import Earlier
from bench_runner.run.session import Session
from format_bench.progress import Silent

SECOND = 10**9


def chain(variant: str = "csv[engine=pandas]", dataset: str = "eq", **changes: Any) -> Chain:
    given: dict[str, Any] = {
        "suite": "tabular",
        "dataset": dataset,
        "variant": variant,
        "spelled": variant,
        "library": "lib 1",
        "suffix": ".x",
        "mapped": False,
        "codec": None,
        "target": Target("pandas", "str", "masked"),
        "conditions": Conditions(),
        "operations": ("save", "read"),
    }
    return Chain(**given | changes)


def sample(of: Chain, operation: str = "read", **changes: Any) -> Sample:
    given: dict[str, Any] = {
        "suite": of.suite,
        "operation": operation,
        "dataset": of.dataset,
        "dataset_digest": "d",
        "rows": 1000,
        "variant": of.variant,
        "library": of.library,
        "conditions": of.conditions,
        "machine": "lab",
        "round": 1,
        "position": 0,
    }
    return Sample(**given | changes)


def session(**changes: Any) -> Session:
    """Return the session of a run without a plan, which stores nothing."""
    given: dict[str, Any] = {
        "plan": None,
        "options": Options(),
        "folder": Path("nowhere"),
        "writer": None,
        "watcher": Silent(),
        "info": RunInfo(seed=1),
        "machine": "lab",
        "datasets": {},
        "benches": {},
        "earlier": Earlier(),
        "position": 0,
    }
    return Session(**given | changes)
