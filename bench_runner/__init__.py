"""How it is measured: suites become a plan, the plan becomes chains, chains run in fresh workers and leave samples.

For notebooks and programs `from bench_runner import run, recommend` (see bench_runner.notebook).
"""

from __future__ import annotations

from typing import Any

__all__ = ["recommend", "run"]


def __getattr__(name: str) -> Any:
    """`run` and `recommend`, loaded when they are asked for: workers import this package and must stay small."""
    if name in __all__:
        from bench_runner import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
