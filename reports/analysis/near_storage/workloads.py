"""Load published selectivities of real workloads, from which retrieval rates are computed.

The figures are those of Weigand, TU Munich 2025, chapter 4, who took them from Snowset and Thesios.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources

from reports.analysis.near_storage.retrieval import Band

CAPACITY_GB = 111_840
"""Capacity of a node in the thesis, in GB. Both the published monthly rates and ours are computed for this capacity."""


@cache
def distributions() -> Mapping[str, tuple[Band, ...]]:
    """Return the distribution of query selectivities for each workload (tables 4.2 and 4.4)."""
    found: dict[str, tuple[Band, ...]] = {}
    for row in published_rows("near_storage_selectivity.csv"):
        above, up_to, queries = (float(row[name]) for name in ("above_percent", "up_to_percent", "queries_percent"))
        found[row["workload"]] = (*found.get(row["workload"], ()), Band(above, up_to, queries))
    return found


@cache
def needed_per_month() -> Mapping[str, str]:
    """Return how often a month each workload reads all data that it stores, as printed in sections 4.1 and 4.2."""
    return {row["workload"]: row["needed_per_month"] for row in published_rows("near_storage_retrieval.csv")}


def published_rows(file: str) -> list[dict[str, str]]:
    """Return the rows of a published table as dictionaries by column name."""
    text = resources.files("reports.sources").joinpath(f"published/{file}").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
