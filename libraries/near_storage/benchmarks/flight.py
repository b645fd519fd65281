"""Cost of near storage on Flight as ratios to bare streams: `python -m libraries.near_storage.benchmarks.flight`.

Servers run as separate processes on loopback, with warm data. The bounds are those of the issue's Speed section.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import xxhash

from libraries.near_storage.client.connection import Client, connect
from libraries.near_storage.client.executor import Options
from libraries.near_storage.client.stream_attempt import Received, checked, remaining_groups
from libraries.near_storage.client.stream_queue import Pump
from libraries.near_storage.errors import BusyError, DamagedError
from libraries.near_storage.predicates.sql import parse
from libraries.near_storage.reading import by_ranges
from libraries.near_storage.serving import security
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.serving.protocol import Statistics
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.tests.serving.crowd import beside_a_good_one, tables
from libraries.near_storage.tests.serving.processes import ROOT, Processes, processes

GROUP_ROWS = 125_000
MEMORY_BYTES = 500_000_000
"""Memory limit of the node. It is low enough that exceeding it would show."""

BARE = """
import sys
import pyarrow as pa, pyarrow.flight as flight, pyarrow.parquet as pq
from pathlib import Path
from libraries.near_storage.parquet import compact, footer
from libraries.near_storage.reading import by_ranges, digests

class Bare(flight.FlightServerBase):
    def __init__(self, paths):
        super().__init__("grpc://127.0.0.1:0")
        self.held = {b"v1": pq.read_table(paths).to_batches(max_chunksize=65_536), b"v2": []}
        for path in paths:
            with open(path, "rb") as file:
                described = compact.from_footer(footer.read_footer(file))
                fd, groups, leaves = file.fileno(), range(len(described.rows)), range(len(described.columns))
                known = digests.of_file(fd, described)
                self.held[b"v2"] += by_ranges.parts(fd, described, known, groups, leaves)

    def do_get(self, context, ticket):
        batches = self.held[ticket.ticket]
        return flight.GeneratorStream(batches[0].schema, iter(batches))

server = Bare([Path(each) for each in sys.argv[1:]])
print(server.port, flush=True)
server.serve()
"""


def median_s(work: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of `rounds` calls, after one warm-up call."""
    work()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def in_turns(rounds: int, calls: dict[str, Callable[[], object]]) -> dict[str, np.ndarray]:
    """Return the seconds of each call in each round. Calls alternate, so that other load affects all of them."""
    taken_s: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if round_:
                taken_s[name].append(time.perf_counter() - begin)
    return {name: np.array(each) for name, each in taken_s.items()}


def written(folder: Path, files: int, rows: int, group_rows: int) -> list[Path]:
    """Write uncompressed files of ten numeric columns, clustered by the first."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    paths = []
    for number in range(files):
        columns = {f"c{column}": rng.random(rows) for column in range(1, 10)}
        table = pa.table({"key": np.arange(number * rows, (number + 1) * rows), **columns})
        paths.append(folder / f"{number:04}.parquet")
        pq.write_table(table, paths[-1], row_group_size=group_rows, compression="none", use_dictionary=False)
    return paths


def drained(client: Client, sql: str, way: str) -> int:
    """Read all checked batches of a query and keep none of them."""
    asked = client.executor.ask(parse(sql), Options(way=way))
    return sum(batch.num_rows for batch in client.executor.rows(asked))


def received(client: Client, sql: str) -> int:
    """Receive all bytes of V2 and check their digests without decoding. Its chunks are shorter than a batch."""
    asked = client.executor.ask(parse(sql), Options(way="v2"))
    caller, count, pumps = Caller(), Received(), []
    for source in asked.sources:
        ticket = flight.Ticket(source.ticket)
        begin = partial(caller.client(source.locations[0]).do_get, ticket, caller.options(600))
        pumps.append((source, Pump(begin, by_ranges.PARTS, source.locations[0])))
    for source, pump in pumps:
        groups = remaining_groups(source.share.pieces, None)
        for _, batch in checked(pump, by_ranges.PARTS, groups, None, 20, count):
            for part in by_ranges.each(batch):
                if part.row_group >= 0 and xxhash.xxh3_64_intdigest(part.data) != part.digest:
                    raise DamagedError("a chunk changed")
    return count.batch_bytes


def shown(what: str, value: float, bound: str, good: bool) -> None:
    click.echo(f"{'ok  ' if good else 'MISS'} {what}: {value:.3g} ({bound})")


def streams(client: Client, paths: list[Path], rounds: int) -> None:
    command = [sys.executable, "-c", BARE, *map(str, paths)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as bare:
        assert bare.stdout is not None
        location = f"grpc://127.0.0.1:{int(bare.stdout.readline())}"
        with flight.connect(location) as plain:

            def drain(ticket: bytes) -> int:
                return sum(chunk.data.nbytes for chunk in plain.do_get(flight.Ticket(ticket)))

            size = drain(b"v2")
            taken_s = in_turns(
                rounds,
                {
                    "bare V2": lambda: drain(b"v2"),
                    "V2": lambda: received(client, "SELECT * FROM large"),
                    "bare V1": lambda: drain(b"v1"),
                    "V1": lambda: drained(client, "SELECT * FROM large", "v1"),
                    "local decoding": lambda: [pq.read_table(path) for path in paths],
                    "V2 as rows": lambda: drained(client, "SELECT * FROM large", "v2"),
                },
            )
        bare.kill()
    speeds = ", ".join(f"{name} {size / np.median(each) / 1e9:.2f}" for name, each in taken_s.items())
    click.echo(f"{size / 1e6:.0f} MB; GB/s, medians: {speeds}")
    beside("V2 compared with a bare stream of the same batches", taken_s["bare V2"], taken_s["V2"])
    slower = np.maximum(taken_s["bare V1"], taken_s["local decoding"])
    beside("V1 compared with the slower of bare stream and local decoding", slower, taken_s["V1"])


def beside(what: str, bare_s: np.ndarray, ours_s: np.ndarray) -> None:
    """Print the median of the ratios of each round, because calls of one round meet the same load."""
    ratio = float(np.median(bare_s / ours_s))
    shown(what, ratio, ">= 0.8", ratio >= 0.8)


def small(client: Client, rounds: int) -> None:
    for sql in ("SELECT c1 FROM small WHERE key = 31", "SELECT count(*) AS n FROM small WHERE key < 40"):
        taken_ms = 1_000 * median_s(lambda sql=sql: client.query(sql), rounds * 4)
        shown(f"ms over 640 partitions: {sql}", taken_ms, "<= 15", taken_ms <= 15)


def used(secret: str, node: str) -> Statistics:
    return Caller(security.cluster_token(secret.encode())).ask(node, "statistics", b"", Statistics)


def crowd(uri: str, token: str, clients: int, rows: int) -> dict[str, int]:
    """Run this many clients at once, each with its own connection, and count their outcomes.

    Each client reads a row group of the large table as rows. A client that is refused retries for a minute.
    """

    def ask(number: int) -> str:
        first = number * GROUP_ROWS % rows
        try:
            with connect(uri, token, busy_s=60) as client:
                found = client.query(f"SELECT * FROM large WHERE key >= {first} AND key < {first + GROUP_ROWS}", "v1")
            right = found["key"].to_pylist() == list(range(first, first + GROUP_ROWS))
            return "answered" if right else "wrong"
        except BusyError:
            return "refused as busy"

    with ThreadPoolExecutor(clients) as asking:
        told = list(asking.map(ask, range(clients)))
    return {each: told.count(each) for each in sorted(set(told))}


def crowded(served: Processes, clients: int, rows: int, at_start: Statistics) -> None:
    began = time.perf_counter()
    counts = crowd(served.uri, served.token, clients, rows)
    taken_s = time.perf_counter() - began
    after = used(served.secret, served.addresses["node0"])
    good = set(counts) <= {"answered", "refused as busy"} and after.most_at_once <= Limits().requests
    click.echo(f"{'ok  ' if good else 'MISS'} {clients} clients at once: {counts} in {taken_s:.0f} s, at most ")
    click.echo(f"     {after.most_at_once} at once (limit {Limits().requests})")
    grown, most = after.peak_bytes - at_start.peak_bytes, MEMORY_BYTES
    shown("... memory growth of a node, MB", grown / 1e6, f"<= {most / 1e6:.0f}", grown <= most)


def hostile(folder: Path, clients: int, queries: int) -> None:
    """Run very demanding queries next to a well-behaved client, with the default limits of nodes."""
    limits = Limits()
    folder.mkdir()
    with processes(folder, batch_bytes=limits.batch_bytes) as served, connect(served.uri, served.token) as client:
        for name, path in tables(folder).items():
            client.put(name, path)
        lineitem(client, folder)
        outcome = beside_a_good_one(served, client, clients, queries)
    good = not outcome.dead and not outcome.wrong and sum(outcome.hostile.values()) == queries
    click.echo(f"{'ok  ' if good else 'MISS'} {queries} hostile queries of {clients} clients: {outcome.hostile} in")
    told = f"{len(outcome.good_s)} good queries at the same time, {outcome.wrong} wrong, dead nodes: {outcome.dead}"
    click.echo(f"     {outcome.taken_s:.0f} s; {told}")
    slowest_s, median_s = max(outcome.good_s), statistics.median(outcome.good_s)
    shown(f"... slowest good query, s (median {median_s:.3f})", slowest_s, "<= 2", slowest_s <= 2)
    grown, most = max(outcome.grown_bytes.values()), limits.memory_bytes
    shown("... memory growth of a node, MB", grown / 1e6, f"<= {most / 1e6:.0f}", grown <= most)


def lineitem(client: Client, folder: Path) -> None:
    """Time a filter on string views, as tpchgen-cli writes them: the first query after the upload."""
    program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    if not program.exists():
        click.echo("     TPC-H skipped: tpchgen-cli is not installed")
        return
    made = ["parquet", "-s", "0.1", "--tables=lineitem", "--parts=4", f"--output-dir={folder}"]
    subprocess.run([str(program), *made], check=True, capture_output=True)
    client.put("lineitem", folder / "lineitem")
    began = time.perf_counter()
    found = client.query("SELECT * FROM lineitem WHERE l_shipmode LIKE 'TR%' LIMIT 2")
    taken_s = time.perf_counter() - began
    right = found["l_shipmode"].to_pylist() == ["TRUCK"] * 2
    shown("s: SELECT * FROM lineitem WHERE l_shipmode LIKE 'TR%' LIMIT 2", taken_s, "<= 1", right and taken_s <= 1)


@click.command()
@click.option("--megabytes", default=240, show_default=True, help="size of the large table")
@click.option("--clients", default=500, show_default=True)
@click.option("--rounds", default=15, show_default=True)
@click.option("--hostile-queries", default=200, show_default=True)
def main(megabytes: int, clients: int, rounds: int, hostile_queries: int) -> None:
    """Print the measured figures and their targets."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hostile(folder / "hostile", 8, hostile_queries)
        large = written(folder / "large", 4, megabytes * 10**6 // 80 // 4, GROUP_ROWS)
        tiny = written(folder / "small", 640, 1, 1)
        with (
            processes(folder, batch_bytes=Limits().batch_bytes, memory_bytes=MEMORY_BYTES) as served,
            connect(served.uri, served.token) as client,
        ):
            at_start = used(served.secret, served.addresses["node0"])
            client.put("large", large)
            client.put("small", tiny)
            streams(client, large, rounds)
            small(client, rounds)
            crowded(served, clients, 4 * (megabytes * 10**6 // 80 // 4), at_start)


if __name__ == "__main__":
    main()
