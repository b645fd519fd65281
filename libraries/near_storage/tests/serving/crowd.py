"""Clients that use as many resources as they can, next to one with small queries: outcomes, and memory of the nodes.

    python -m libraries.near_storage.tests.serving.crowd URI CLIENTS QUERIES < TOKEN

sends hostile queries, and prints the number of each outcome. `beside_a_good_one` starts this process, sends good
queries at the same time, and watches the memory of the nodes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from libraries.near_storage.client.connection import Client, connect
from libraries.near_storage.client.executor import Options
from libraries.near_storage.errors import NearStorageError
from libraries.near_storage.predicates.sql import parse
from libraries.near_storage.serving import security
from libraries.near_storage.serving.protocol import Statistics
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.tests.serving.processes import ROOT, Processes

READ_BYTES = 30_000_000
"""Bytes that a hostile client reads of an answer, because the node's memory should fill, not the client's."""
GOOD_ROWS = 200_000
MODULE = "libraries.near_storage.tests.serving.crowd"

HOSTILE = (
    "SELECT * FROM wide",
    "SELECT * FROM wide WHERE id > {number}",
    "SELECT s, count(*) AS n FROM wide WHERE id < {number} GROUP BY s",
    "SELECT min(s) AS low, max(s) AS high FROM wide WHERE id < {number}",
    "SELECT id FROM wide WHERE s LIKE 'b%' AND id < {number}",
    "SELECT * FROM nested",
    "SELECT * FROM nested WHERE id = {number}",
    "SELECT * FROM views",
    "SELECT * FROM views WHERE mode LIKE 'TR%'",
    "SELECT * FROM views WHERE mode = 'AIR' OR note LIKE 'note 1%'",
    "SELECT note, count(*) AS n, max(mode) AS m FROM views GROUP BY note",
    "SELECT note, mode, id, count(*) AS n FROM views WHERE id < {number} GROUP BY note, mode, id",
    "SELECT id FROM views WHERE id IN ({many})",
    "SELECT id FROM views WHERE {long}",
    "SELECT long, count(*) AS n FROM groups GROUP BY long",
    "SELECT min(long) AS low FROM groups",
)
"""Each requests far more bytes than its file has, or much computation."""


def tables(folder: Path, scale: int = 1) -> dict[str, Path]:
    """Write small Parquet files and return them by table name; `scale` divides the rows for hostile queries."""
    rng = np.random.default_rng(1)
    texts = pa.array(["a" * 500_000, "b" * 500_000])
    wide = pa.DictionaryArray.from_arrays(pa.array(rng.integers(2, size=20_000 // scale), pa.int32()), texts)
    items = pa.array(["x" * 20_000, "y" * 20_000]).dictionary_encode()
    item = pa.DictionaryArray.from_arrays(pa.array(rng.integers(2, size=6_000), pa.int32()), items.dictionary)
    modes = pa.array(["TRUCK", "AIR", "SHIP", "TRAIN OF MANY WAGONS"])
    rows = 150_000 // scale
    made = {
        "wide": {"id": np.arange(20_000 // scale), "s": wide},
        "nested": {
            "id": np.arange(2_000),
            "items": pa.ListArray.from_arrays(np.arange(0, 6_001, 3, dtype=np.int32), item),
        },
        "views": {
            "id": np.arange(rows),
            "mode": modes.take(pa.array(rng.integers(4, size=rows))).cast(pa.string_view()),
            "note": pa.array([f"note {number} of this row" for number in range(rows)], pa.string_view()),
            "bytes": pa.array([b"%d" % number * 5 for number in range(rows)], pa.binary_view()),
        },
        "groups": {"long": pa.array([f"{number:05}" * 300 for number in range(20_000 // scale)])},
        "good": {"key": np.arange(GOOD_ROWS), "value": np.arange(GOOD_ROWS) * 7},
    }
    paths = {name: folder / f"{name}.parquet" for name in made}
    for name, columns in made.items():
        # Dictionaries are not in the schema: they are how plain texts are stored.
        plain = name in ("wide", "nested")
        pq.write_table(pa.table(columns), paths[name], row_group_size=50_000, store_schema=not plain)
    return paths


def hostile(uri: str, token: str, clients: int, queries: int) -> dict[str, int]:
    """Send `queries` queries from `clients` clients, each sequentially; return the number of each outcome."""

    def ask(client_number: int) -> Counter[str]:
        rng = random.Random(client_number)
        told: Counter[str] = Counter()
        with connect(uri, token, busy_s=5) as client:
            for number in range(client_number, queries, clients):
                told[_asked(client, HOSTILE[number % len(HOSTILE)], rng)] += 1
        return told

    with ThreadPoolExecutor(clients) as asking:
        return dict(sum(asking.map(ask, range(clients)), Counter()))


def _asked(client: Client, sql: str, rng: random.Random) -> str:
    many = ", ".join(str(rng.randrange(10**6)) for _ in range(5_000))
    long = " OR ".join(f"id = {rng.randrange(10**6)}" for _ in range(300))
    query = parse(sql.format(number=rng.randrange(20_000), many=many, long=long))
    try:
        if query.aggregated:
            client.answer(query)
            return "answered"
        received = 0
        asked = client.executor.ask(query, Options(way="v1"))
        with closing(client.executor.rows(asked)) as batches:
            for batch in batches:
                received += batch.nbytes
                if received > READ_BYTES:
                    return "abandoned"
                if rng.random() < 0.05:
                    time.sleep(0.1)
        return "answered"
    except NearStorageError as error:
        return type(error).__name__


@dataclass(frozen=True)
class Outcome:
    """The result of a crowd: answers by their kind, and the seconds of each good one."""

    hostile: dict[str, int]
    good_s: list[float]
    wrong: int
    grown_bytes: dict[str, int]
    """Growth of the peak memory of each node, by name."""
    dead: list[str]
    taken_s: float


def beside_a_good_one(served: Processes, client: Client, clients: int, queries: int, pause_s: float = 0.05) -> Outcome:
    """Send hostile queries from a separate process; at the same time `client` sends small ones, with pauses. The tables
    must exist."""
    nodes = [name for name in served.running if name != "catalog"]
    before = {name: _peak_bytes(served, name) for name in nodes}
    command = [sys.executable, "-m", MODULE, served.uri, str(clients), str(queries)]
    began_s = time.monotonic()
    good_s: list[float] = []
    wrong = 0
    rng = random.Random(1)
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdin is not None
        assert crowd.stdout is not None
        crowd.stdin.write(served.token + "\n")
        crowd.stdin.close()
        while crowd.poll() is None:
            key = rng.randrange(GOOD_ROWS - 10)
            times_s = [time.monotonic()]
            rows = client.query(f"SELECT key, value FROM good WHERE key >= {key} AND key < {key + 10}")
            times_s.append(time.monotonic())
            count = client.query(f"SELECT count(*) AS n, sum(value) AS s FROM good WHERE key < {key}")
            times_s.append(time.monotonic())
            good_s += [after_s - before_s for before_s, after_s in pairwise(times_s)]
            expected = [{"key": each, "value": each * 7} for each in range(key, key + 10)]
            wrong += rows.to_pylist() != expected or count["n"][0].as_py() != key
            time.sleep(pause_s)
        told = msgspec.json.decode(crowd.stdout.read(), type=dict[str, int])
    return Outcome(
        told,
        good_s,
        wrong,
        {name: _peak_bytes(served, name) - before[name] for name in nodes},
        [name for name, process in served.running.items() if process.poll() is not None],
        time.monotonic() - began_s,
    )


def _peak_bytes(served: Processes, name: str) -> int:
    caller = Caller(security.cluster_token(served.secret.encode()))
    return caller.ask(served.addresses[name], "statistics", b"", Statistics).peak_bytes


def main() -> None:
    """Send the queries and print the number of each outcome as JSON."""
    uri, clients, queries = sys.argv[1:]
    told = hostile(uri, sys.stdin.readline().strip(), int(clients), int(queries))
    sys.stdout.buffer.write(msgspec.json.encode(told))


if __name__ == "__main__":
    main()
