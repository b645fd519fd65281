"""Hostile queries next to good ones, in a short form: `make selfbench-near-storage` sends 200, and prints the times."""

from pathlib import Path

import pytest

from libraries.near_storage.client.connection import connect
from libraries.near_storage.tests.serving import crowd
from libraries.near_storage.tests.serving.processes import processes

MEMORY_BYTES = 300_000_000


@pytest.mark.timeout(120)
def test_no_node_dies_and_none_passes_its_limit(tmp_path: Path):
    with (
        processes(tmp_path, nodes=2, batch_bytes=1 << 20, memory_bytes=MEMORY_BYTES) as served,
        connect(served.uri, served.token) as client,
    ):
        for name, path in crowd.tables(tmp_path, scale=20).items():
            client.put(name, path)
        outcome = crowd.beside_a_good_one(served, client, clients=4, queries=len(crowd.HOSTILE), pause_s=0.3)
    assert outcome.dead == []
    assert max(outcome.grown_bytes.values()) <= MEMORY_BYTES
    assert (outcome.wrong, len(outcome.good_s) > 4) == (0, True)
    assert sum(outcome.hostile.values()) == len(crowd.HOSTILE)
    assert set(outcome.hostile) <= {"answered", "abandoned", "BusyError", "TooLargeError", "RequestError"}
    assert outcome.hostile["answered"] > 4
