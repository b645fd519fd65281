"""`format-bench store` with a catalog and nodes as threads of the test: messages when something is wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from format_bench.cli import main
from libraries.near_storage.tests.serving.cluster import Cluster, cluster


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Ask = Callable[..., Said]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "near") as found:
        yield found


@pytest.fixture
def ask(served: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ask:
    """Words of `store` -> exit code and output."""
    monkeypatch.setenv("FORMAT_BENCH_CATALOG", served.uri)
    monkeypatch.setenv("FORMAT_BENCH_TOKEN", served.token)

    def asked(*words: object) -> Said:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["store", *map(str, words)])
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, *capfd.readouterr())

    return asked


@pytest.fixture
def events(tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    folder.mkdir()
    for part in range(3):
        pq.write_table(pa.table({"id": range(part * 10, part * 10 + 10)}), folder / f"part-{part}.parquet")
    return folder


def test_what_repair_cannot_mend_is_listed_by_table(served: Cluster, ask: Ask, events: Path) -> None:
    assert ask("put", "events", events).code == 0
    assert ask("put", "one", events / "part-0.parquet").code == 0
    assert ask("repair").code == 0
    served.nodes[0].close()
    few = ask("repair")
    assert few.code == 1
    assert "left: events: 3 partitions with too few replicas" in few.err
    assert "left: one: 1 partition with too few replicas" in few.err
    assert "left: no answer from node0" in few.err
    assert "--forget NODE" in few.err
    served.nodes[1].close()
    gone = ask("repair")
    assert gone.code == 1
    assert "left: events: 3 partitions without an intact replica" in gone.err
    assert "left: no answer from node0, node1" in gone.err
    found = ask("check")
    assert found.code == 1
    assert "'store repair' leaves: one: 1 partition without an intact replica" in found.err


def test_a_replica_that_repair_copies_back_leaves_nothing(served: Cluster, ask: Ask, events: Path) -> None:
    ask("put", "events", events)
    served.stored_files(0)[0].unlink()
    found = ask("check")
    assert (found.code, found.err) == (1, "")
    done = ask("repair")
    assert (done.code, done.err) == (0, "")
    assert "1 copied" in done.out


def test_a_lost_node_with_an_only_copy_is_kept_with_advice(served: Cluster, ask: Ask, events: Path) -> None:
    ask("put", "events", events)
    served.nodes[0].close()
    assert ask("repair", "--forget", "node0").code == 1
    served.nodes[1].close()
    said = ask("repair", "--forget", "node1")
    assert said.code == 2
    assert "only copy of 3 partitions of events" in said.err
    assert "put these tables again or delete them" in said.err


def test_a_node_that_does_not_answer_is_named(served: Cluster, ask: Ask, events: Path) -> None:
    ask("put", "events", events)
    served.nodes[0].close()
    put = ask("put", "events", events)
    assert put.code == 1
    assert "(node0: grpc://" in put.err
    assert "1 storage node can take one: start more nodes" in put.err
    assert "catalog at" not in put.err
    served.nodes[1].close()
    query = ask("query", "SELECT id FROM events")
    assert query.code == 1
    assert [name for name in ("node0: grpc://", "node1: grpc://", "start the nodes") if name not in query.err] == []
    assert "catalog at" not in query.err
    assert ask("tables").code == 0
    served.catalog.close()
    silent = ask("tables")
    assert silent.code == 1
    assert f"the catalog at {served.uri} does not answer" in silent.err
    assert "Start it by 'serve catalog FOLDER'" in silent.err


def test_a_folder_without_parquet_is_named_with_the_rule(ask: Ask, events: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "below").mkdir(parents=True)
    for sources in ((tmp_path / "empty",), (events, tmp_path / "empty")):
        said = ask("put", "events", *sources)
        assert said.code == 2
        assert f"{tmp_path / 'empty'}: " in said.err
        assert ".parquet" in said.err


def test_an_answer_is_not_asked_for_where_it_cannot_be_written(ask: Ask, events: Path, tmp_path: Path) -> None:
    ask("put", "events", events)
    said = ask("query", "SELECT id FROM events", "--out", tmp_path / "missing" / "a.parquet")
    assert said.code == 2
    assert f"the folder {tmp_path / 'missing'} does not exist" in said.err
    assert ".part" not in said.err


PRINTS = """
import numpy as np, pyarrow as pa
from format_bench.commands import store
store._give(pa.table({"id": np.arange(10_000_000)}), None)
"""


def test_views_of_text_are_printed(ask: Ask, tmp_path: Path) -> None:
    """pyarrow cannot write them as CSV; files of arrow-rs, as from tpchgen-cli, contain them."""
    table = pa.table(
        {
            "mode": pa.array(["TRUCK", None, "a longer one than fits a view"], pa.string_view()),
            "bytes": pa.array([b"x", b"y", None], pa.binary_view()),
        }
    )
    pq.write_table(table, tmp_path / "views.parquet")
    ask("put", "views", tmp_path / "views.parquet")
    for way in ("v1", "v2"):
        found = ask("query", "SELECT * FROM views WHERE mode LIKE 'T%'", "--way", way)
        assert (found.code, found.out) == (0, '"mode","bytes"\n"TRUCK","x"\n')
        out = tmp_path / f"{way}.parquet"
        assert ask("query", "SELECT * FROM views", "--way", way, "--out", out).code == 0
        assert pq.read_table(out).equals(table)


def test_ctrl_c_ends_the_printing_of_an_answer_at_once(tmp_path: Path) -> None:
    """A single call that writes everything would handle no signal until its end."""
    file = tmp_path / "answer.csv"
    with file.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", PRINTS], stdout=output, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        while process.poll() is None and file.stat().st_size == 0:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    assert 0 < file.stat().st_size < 40_000_000
