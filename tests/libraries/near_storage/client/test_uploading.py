"""A put that is given up ends at once, whatever a node does, and leaves nothing open."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.errors import UnavailableError
from tests.libraries.near_storage.serving.cluster import Cluster

ROOT = Path(__file__).parents[4]
PUT = """
import sys
from pathlib import Path
from libraries.near_storage.client.connection import connect

with connect(sys.argv[1], sys.argv[2]) as client:
    client.put("u", [Path(sys.argv[3])])
"""


@pytest.mark.parametrize("rows", [10, 3_000_000], ids=["all is sent", "a node does not read on"])
def test_ctrl_c(served: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(1).integers(2**62, size=rows)}), path)
    begun, until = threading.Event(), threading.Event()

    def hang(*arguments: object) -> None:
        begun.set()
        until.wait(60)
        raise UnavailableError("gone")

    monkeypatch.setattr(served.nodes[1]._store, "put", hang)
    putting = subprocess.Popen(
        [sys.executable, "-c", PUT, served.uri, served.token, path],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert begun.wait(60)
        putting.send_signal(signal.SIGINT)
        _, told = putting.communicate(timeout=10)
        assert "KeyboardInterrupt" in told
        assert served.catalog._catalog.upkeep.view().uploading == frozenset()
    finally:
        until.set()
        putting.kill()
        putting.wait()
