"""Invent runs that vary one parameter. Their lines are straight on logarithmic scales, with known crossings."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_runner.results.information import information
from bench_runner.results.records import Conditions, Run, Sample
from tests.reports.factory import MACHINE, make_sample

VALUES = (1, 10, 100, 1_000, 10_000)
Time = Callable[[float], float]
"""Return the true time in ms for a value of the parameter."""

STEEP, FLAT = "feather[engine=pyarrow,codec=none]", "lance[engine=pylance]"
CROSSING: Mapping[str, Time] = {
    STEEP: lambda value: 0.05 * value**0.9,
    FLAT: lambda value: 0.5 * value**0.4,
    "vortex[engine=vortex-data]": lambda value: 3 * value**0.4,
    "parquet[engine=pyarrow,codec=none]": lambda value: 8 * value**0.3,
    "raw-io[engine=readinto]": lambda value: 0.001 * value,
}
"""Variant -> true time. STEEP is faster below 100, FLAT above."""
EQUAL: Mapping[str, Time] = {
    name: lambda value: value**0.5
    for name in (STEEP, FLAT, "vortex[engine=vortex-data]", "parquet[engine=pyarrow,codec=none]")
}


def over_operations(
    times: Mapping[str, Time] = CROSSING,
    values: Sequence[float] = VALUES,
    *,
    spelled: str = "take[rows={},handle=kept]",
    rounds: int = 7,
    change: Callable[[Sample], Sample] = lambda sample: sample,
    **info: Any,
) -> Run:
    """Return a run of the suite `access` on `events` with one operation per value, and a spread of 3 %."""
    source = random.Random(1)
    operations = {spelled.format(value): value for value in values}
    samples = [
        change(_sample("access", "events", operation, variant, number, times[variant](value), source))
        for number in range(1, rounds + 1)
        for operation, value in operations.items()
        for variant in times
    ]
    return Run(Path("results/lines"), _info(("events",), info), tuple(samples))


def over_data(
    times: Mapping[str, Time] = CROSSING,
    values: Sequence[float] = VALUES,
    *,
    name: str = "traits",
    parameter: str = "distinct",
    rounds: int = 7,
    told: bool = True,
    **info: Any,
) -> Run:
    """Return a run of the suite `sweep` with save and read on one data set per value. The first value is the default.

    `told` states whether the run records all parameters of its data sets.
    """
    source = random.Random(2)
    datasets = {(f"{name}[{parameter}={value}]" if place else name): value for place, value in enumerate(values)}
    samples = []
    for number in range(1, rounds + 1):
        for dataset, value in datasets.items():
            for variant, time in times.items():
                for operation in ("save", "read"):
                    samples.append(_sample("sweep", dataset, operation, variant, number, time(value), source))
    made = _info(tuple(datasets), info)
    if told:
        for dataset, value in datasets.items():
            made.datasets[dataset].parameters = {parameter: str(value), "columns": "8"}
    return Run(Path("results/lines"), made, tuple(samples))


def _sample(
    suite: str, dataset: str, operation: str, variant: str, number: int, milliseconds: float, source: random.Random
) -> Sample:
    wall_ns = int(milliseconds * 1e6 * source.lognormvariate(0, 0.03))
    figures = {"wall_ns": wall_ns, "cpu_ns": wall_ns, "peak_private_bytes": wall_ns, "peak_rss_bytes": wall_ns}
    if operation == "save":
        figures["size_bytes"] = int(1_000_000 * milliseconds)
    return make_sample(
        suite=suite,
        dataset=dataset,
        operation=operation,
        variant=variant,
        round=number,
        position=number,
        conditions=Conditions(target="arrow", track="choice"),
        figures=figures,
        fidelity=None if operation == "save" else "exact",
    )


def _info(datasets: Sequence[str], more: Mapping[str, Any]) -> Any:
    shape = {
        "id": "2026-03-01T10-00-00-lab-1",
        "machine": {"name": MACHINE, "cores": 2, "memory_bytes": 8_000_000_000, "python": "CPython 3.11.2"},
        "suites": {"access": "Which format for which use?", "sweep": "At which value does the winner change?"},
        "datasets": {name: {"digest": "9f2c", "rows": 1_000_000, "size_bytes": 60_000_000} for name in datasets},
    }
    return information({**shape, **more})
