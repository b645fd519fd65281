"""Uploads that are abandoned, that go to a hanging node, or whose reply is lost; errors name the file."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.client import table_upload
from libraries.near_storage.errors import BusyError, FooterError, RequestError, UnavailableError
from libraries.near_storage.serving import node as node_module
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.storing.partition_metadata import PartitionInfo
from libraries.near_storage.tests.serving.cluster import BrokenNode, Cluster

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


def hung(monkeypatch: pytest.MonkeyPatch, node: BrokenNode) -> threading.Event:
    """Make a node stop accepting an upload; return the event that releases it."""
    until = threading.Event()

    def hang(*arguments: object) -> None:
        until.wait(60)
        raise UnavailableError("gone")

    monkeypatch.setattr(node._store, "put", hang)
    return until


@pytest.mark.parametrize("rows", [10, 3_000_000], ids=["all is sent", "a node does not read on"])
def test_a_node_that_hangs_is_lost(served: Cluster, monkeypatch: pytest.MonkeyPatch, rows: int):
    until = hung(monkeypatch, served.nodes[1])
    began = time.monotonic()
    try:
        client = served.client(idle_s=0.5, busy_s=0.5)
        with pytest.raises(UnavailableError, match=r"node1: .* 0\.5 s"):
            client.put("hung", pa.table({"a": np.random.default_rng(1).integers(2**62, size=rows)}))
        assert time.monotonic() - began < 30
    finally:
        until.set()


def test_a_node_that_keeps_an_upload_until_it_has_memory(
    served: Cluster, table: pa.Table, monkeypatch: pytest.MonkeyPatch
):
    """It may be silent for longer than `idle_s`, and needs the file only once."""
    node = served.nodes[1]
    monkeypatch.setattr(node.gate, "_limits", Limits(requests=1, waiting=0, wait_s=0.01))
    store_put, puts = node._store.put, []

    def put(*arguments: Any) -> PartitionInfo:
        puts.append(arguments)
        return store_put(*arguments)

    monkeypatch.setattr(node._store, "put", put)
    with ThreadPoolExecutor(1) as pool:
        with node.gate.admitting():
            putting = pool.submit(served.client(idle_s=0.5).put, "kept", table)
            with pytest.raises(TimeoutError):
                putting.result(2.0)
        putting.result(30.0)
    assert len(puts) == 1
    assert served.client().query("SELECT * FROM kept").equals(table)


def test_a_node_keeps_an_upload_for_a_limited_time(served: Cluster, monkeypatch: pytest.MonkeyPatch):
    node = served.nodes[1]
    monkeypatch.setattr(node.gate, "_limits", Limits(requests=1, waiting=0, wait_s=0.01))
    with node.gate.admitting():
        with monkeypatch.context() as patch:
            patch.setattr(node_module, "DESCRIBING_S", 0.3)
            with pytest.raises(BusyError), node._describing_upload(1_000):
                pass
        with monkeypatch.context() as patch:
            patch.setattr(node._ending, "wait", lambda wait_s: True)
            with pytest.raises(UnavailableError, match="shutting down"), node._describing_upload(1_000):
                pass
    with pytest.raises(BusyError, match="from describing"), node._describing_upload(1_000):
        raise BusyError("from describing")
    assert (node.gate._held_bytes, node.gate._under_way, node.gate._computing) == (0, 0, 0)


def test_uploads_that_stall_keep_no_query_out(served: Cluster, table: pa.Table, monkeypatch: pytest.MonkeyPatch):
    node = served.nodes[1]
    until = hung(monkeypatch, node)
    try:
        stalled = [
            threading.Thread(target=lambda name=name: put_and_fail(served, name), daemon=True)
            for name in map(str, range(Limits().requests))
        ]
        for each in stalled:
            each.start()
        while node._uploads._under_way < Limits().requests:
            time.sleep(0.01)
        assert served.client().query("SELECT * FROM t").equals(table)
        # The client may have the whole answer just before the node has left its gate.
        ends = time.monotonic() + 10
        while node.gate._under_way and time.monotonic() < ends:
            time.sleep(0.01)
        assert node.gate._under_way == 0
    finally:
        until.set()
    for each in stalled:
        each.join(30)


def put_and_fail(served: Cluster, name: str) -> None:
    with contextlib.suppress(UnavailableError):
        served.client().put(name, pa.table({"a": [name]}))


@pytest.mark.parametrize("lost", [1, 2])
def test_the_answer_to_the_switch_is_lost(served: Cluster, monkeypatch: pytest.MonkeyPatch, lost: int):
    """Asked again, the catalog returns the same number; if it does not answer, the error must not deny the version."""
    left = iter(range(lost))
    commit = served.catalog._actions["commit"]

    def forgetful(body: memoryview) -> object:
        committed = commit.answer(body)
        if next(left, None) is not None:
            raise UnavailableError("the connection broke")
        return committed

    monkeypatch.setitem(served.catalog._actions, "commit", commit._replace(answer=forgetful))
    client, rows = served.client(), pa.table({"a": [lost]})
    if lost == 1:
        client.put("switched", rows)
    else:
        with pytest.raises(UnavailableError, match="all data is stored"):
            client.put("switched", rows)
    assert client.query("SELECT * FROM switched").equals(rows)


def test_errors_name_the_file(served: Cluster, tmp_path: Path):
    for name, content in (("empty", b""), ("junk", b"junk" * 30)):
        (tmp_path / f"{name}.parquet").write_bytes(content)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": ["x"]}), tmp_path / "b.parquet")
    a = tmp_path / "a.parquet"
    for files, kind, rows in (
        ([a, tmp_path / "empty.parquet"], RequestError, None),
        ([a, tmp_path / "junk.parquet"], FooterError, None),
        ([a, tmp_path / "b.parquet"], RequestError, None),
        ([a, tmp_path / "b.parquet"], RequestError, 1000),
    ):
        with pytest.raises(kind, match=files[1].name):
            served.client().put("named", files, rows)
    with pytest.raises(RequestError, match="cannot be written as Parquet"):
        served.client().put("named", pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}))


def test_what_yields_files_is_gone_through_once(served: Cluster, tmp_path: Path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    client = served.client()
    client.put("yielded", (path for path in [tmp_path / "a.parquet"]))
    assert client.query("SELECT a FROM yielded").num_rows == 1


def test_a_large_file_tells_how_it_gets_on(served: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(table_upload, "WATCH_S", 0.001)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(1).integers(2**62, size=2_000_000)}), path)
    told: list[tuple[int, int | None]] = []
    served.client().put("large", [path], progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert told[-1] == (size, size)
    assert any(0 < done < size for done, _ in told)
