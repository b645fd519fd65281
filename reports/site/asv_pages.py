"""List the graphs of asv's pages (airspeed velocity, a benchmark tool) with their addresses, for an index page.

asv's own front page is a grid of small graphs without format names. The addresses here lead to one kind of figure on
one data set, with all variants next to each other. This module only reads what `asv publish` has written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench_runner.results.information import READ, SAVE

_MEASURES = ((r"time_(\w+)", "{} time"), (r"track_size", "size"), (r"track_(\w+)_peak_memory", "{} peak memory"))
"""(pattern, title): the pattern matches names of benchmarks, and the title states what these benchmarks measure. The
order is the same as in every report."""
_FIRST = (SAVE, READ)


@dataclass(frozen=True)
class Graph:
    """One kind of figure on one data set. The address is relative to the folder of asv's pages."""

    suite: str
    dataset: str
    measure: str
    unit: str
    address: str
    place: tuple[int, int, str]
    """Sort key of the graph within its data set. The order is that of the columns in reports."""


def graphs(folder: Path) -> list[Graph]:
    """Return the graphs with at least one figure.

    Raises OSError, ValueError, KeyError, TypeError or AttributeError if the folder does not have the contents that asv
    writes.
    """
    benchmarks = json.loads((folder / "index.json").read_text(encoding="utf-8"))["benchmarks"]
    return [graph for name in sorted(benchmarks) for graph in _graphs_of(folder, benchmarks[name])]


def _graphs_of(folder: Path, benchmark: dict[str, Any]) -> Iterator[Graph]:
    name = benchmark["name"]
    told = _measure(name.rpartition(".")[2])
    if told is None or benchmark["param_names"] != ["dataset", "variant"]:
        return
    measured = _measured_datasets(folder, name, benchmark["params"])
    for dataset in dict.fromkeys(benchmark["params"][0]):
        if dataset in measured:
            # asv writes parameters as Python literals, so the quotes belong to the name.
            address = f"index.html#{name}?x-axis=variant&p-dataset={quote(dataset)}"
            suite, (measure, place) = name.partition(".")[0], told
            yield Graph(suite, dataset.strip("'"), measure, benchmark["unit"], address, place)


def _measure(name: str) -> tuple[str, tuple[int, int, str]] | None:
    """Return the title of a benchmark and the sort key of its graph. Return None if reports do not show the benchmark's
    figure."""
    for role, (pattern, title) in enumerate(_MEASURES):
        if match := re.fullmatch(pattern, name):
            operation = match[1] if match.groups() else ""
            first = _FIRST.index(operation) if operation in _FIRST else len(_FIRST)
            return title.format(operation.replace("_", " ")), (role, first, operation)
    return None


def _measured_datasets(folder: Path, name: str, parameters: list[list[str]]) -> set[str]:
    """Return the data sets that have a figure. For each version, asv stores a list with one value for each pair of data
    set and variant. The list has the order of `product(*parameters)`."""
    pairs = list(product(*parameters))
    found = set()
    for path in (folder / "graphs").rglob(f"{name}.json"):
        if "summary" in path.relative_to(folder).parts:
            continue
        for _, values in json.loads(path.read_text(encoding="utf-8")):
            found |= {dataset for (dataset, _), value in zip(pairs, values or (), strict=False) if value is not None}
    return found
