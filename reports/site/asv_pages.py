"""Which graphs asv's pages show, with the address of each, for the index page that leads to them.

asv's own front page is a grid of small graphs in which a newcomer finds no format: the addresses lead to one measure of
one data set with all variants beside one another. This module reads what `asv publish` has written, changes nothing of
it, and must not know how anything was measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

MEASURES = {
    "time_save": "save time",
    "time_read": "read time",
    "track_size": "size",
    "track_save_peak_memory": "peak memory of saving",
    "track_read_peak_memory": "peak memory of reading",
}


@dataclass(frozen=True)
class Graph:
    """One measure of one data set; the address counts from the folder of asv's pages."""

    suite: str
    dataset: str
    measure: str
    unit: str
    address: str


def graphs(folder: Path) -> list[Graph]:
    """The graphs that show at least one figure. Raises OSError, ValueError, KeyError, TypeError or AttributeError where
    the folder is not as asv writes it."""
    benchmarks = json.loads((folder / "index.json").read_text(encoding="utf-8"))["benchmarks"]
    return [graph for name in sorted(benchmarks) for graph in _graphs_of(folder, benchmarks[name])]


def _graphs_of(folder: Path, benchmark: dict[str, Any]) -> Iterator[Graph]:
    name = benchmark["name"]
    measure = MEASURES.get(name.rpartition(".")[2])
    if measure is None or benchmark["param_names"] != ["dataset", "variant"]:
        return
    measured = _measured_datasets(folder, name, benchmark["params"])
    for dataset in dict.fromkeys(benchmark["params"][0]):
        if dataset in measured:
            # asv spells parameters as Python would, so the quotes belong to the name.
            address = f"index.html#{name}?x-axis=variant&p-dataset={quote(dataset)}"
            yield Graph(name.partition(".")[0], dataset.strip("'"), measure, benchmark["unit"], address)


def _measured_datasets(folder: Path, name: str, parameters: list[list[str]]) -> set[str]:
    """asv keeps one value for each pair of parameters, in the order of their product, for each version."""
    pairs = list(product(*parameters))
    found = set()
    for path in (folder / "graphs").rglob(f"{name}.json"):
        if "summary" in path.relative_to(folder).parts:
            continue
        for _, values in json.loads(path.read_text(encoding="utf-8")):
            found |= {dataset for (dataset, _), value in zip(pairs, values or (), strict=False) if value is not None}
    return found
