"""Create the asv benchmark classes of the suites in bench_runner.suites.

asv measures times. Memory and size are measured by a worker process of this project. A benchmark runs `rounds`
processes, with one call in each and no warm-up. Each process executes one operation on one data set with one variant,
by bench_runner.run.in_process_cell. Importing this module neither generates nor downloads data.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

from bench_runner.run.in_process_cell import TIMEOUT_S, Trial, cells, operations, rows, variants
from bench_runner.suites import SUITES

__all__ = ["TIMEOUT_S", "suite_class"]

ROUNDS = 5


def suite_class(name: str) -> type:
    """Return the base class of the asv benchmark class of a suite. Its parameters are the suite's data sets and
    variants.

    asv identifies caches by the source position of `setup_cache`. Each benchmark class therefore defines its own
    `setup_cache`, which calls `make_data`.
    """
    trial = Trial(name)
    datasets = list(dict.fromkeys(dataset for dataset, _ in cells(name)))
    functions: dict[str, Callable[..., Any]] = {}
    for operation in operations(name):
        word = identifier(operation)
        functions[f"time_{word}"] = _timed(trial, operation)
        functions[f"track_{word}_peak_memory"] = _tracked(trial, _peak_memory(trial, operation))
        for function in (functions[f"time_{word}"], functions[f"track_{word}_peak_memory"]):
            # asv uses the parameters of a function instead of the parameters of its class.
            function.params = (datasets, variants(name, operation))  # type: ignore[attr-defined]
    functions["track_size"] = _tracked(trial, trial.size)
    attributes: dict[str, Any] = {
        "__doc__": SUITES[name].question,
        "make_data": staticmethod(trial.make_data),
        "params": (datasets, variants(name)),
        "param_names": ["dataset", "variant"],
        # Figures for another number of rows are not comparable. With another version, asv starts a new history.
        "version": f"1, {rows(name)} rows",
        "rounds": ROUNDS,
        "repeat": 1,
        "number": 1,
        "warmup_time": 0,
        "min_run_count": 1,
        "timeout": TIMEOUT_S,
    }
    for attribute, function in functions.items():
        function.__name__ = attribute
        attributes[attribute] = function
    return type(name.capitalize(), (), attributes)


def identifier(operation: str) -> str:
    """Return the name of an operation as part of a Python name, such as 'project_columns_4' for
    'project[columns=4]'."""
    return re.sub(r"[^a-z0-9]+", "_", operation).strip("_")


def _timed(trial: Trial, operation: str) -> Callable[..., Any]:
    def setup(dataset: str, variant: str) -> None:
        trial.prepare(operation, dataset, variant)

    def timed(self: object, dataset: str, variant: str) -> None:
        gc.enable()
        trial.run()

    timed.setup = setup  # type: ignore[attr-defined]
    timed.teardown = trial.finish  # type: ignore[attr-defined]
    return timed


def _tracked(trial: Trial, figure: Callable[[], float]) -> Callable[..., Any]:
    def tracked(self: object, dataset: str, variant: str) -> float:
        return figure()

    tracked.setup = trial.execute  # type: ignore[attr-defined]
    tracked.unit = "bytes"  # type: ignore[attr-defined]
    return tracked


def _peak_memory(trial: Trial, operation: str) -> Callable[[], float]:
    return lambda: trial.peak_memory(operation)
