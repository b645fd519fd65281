"""Random filters and aggregates on random files, through Flight: the rows equal those of an evaluation in memory.

The tests run 20 of each, `long_runs` 500 of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from libraries.near_storage.client.connection import Client
from libraries.near_storage.query import Query
from libraries.near_storage.tests import agreement
from libraries.near_storage.tests.serving.cluster import cluster

WAYS = [("v1", "cached"), ("v2", "cached"), ("all", "cached"), ("v1", "parsed"), (None, "cached")]


class Report(NamedTuple):
    row_groups: int
    row_groups_chosen: int


class Served:
    """A table of the service with the interface of `agreement`'s files in a folder."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.schema = client.schema(name)

    def query(self, query: Query, way: str, footers: str) -> tuple[pa.Table, Report]:
        answer = self._client.answer(query, way, footers)
        return answer.table, Report(answer.plan.groups, answer.plan.groups_read)


def run(folder: Path, seed: int, count: int, aggregated: bool, ways_each: int) -> None:
    with cluster(folder / "cluster") as served:
        client = served.client(idle_s=20)
        (folder / "files").mkdir()
        for number, case in enumerate(agreement.cases(seed, count, folder / "files", aggregated)):
            if number % agreement.ASKED_OF_A_FILE == 0:
                client.put("t", case.paths)
                table = Served(client, "t")
            ways = [WAYS[(number + each) % len(WAYS)] for each in range(ways_each)]
            agreement.check(case, table, ways)


@pytest.mark.parametrize("aggregated", [False, True])
def test_twenty_of_one_seed(tmp_path: Path, aggregated: bool):
    run(tmp_path, 1, 20, aggregated, 2)
