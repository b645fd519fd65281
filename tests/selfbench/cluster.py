"""Measure what a cluster costs: `make selfbench-cluster`.

A run over `local:1` is compared with the same run without a cluster, in turns. Then the workers of a cluster sum the
columns of a table near the storage that is four times as large as their memory, and the bytes that pass the client are
counted.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dask.dataframe as dd
import distributed
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench_runner.clock import now_ns
from bench_runner.run.services.proxy import Proxy, counters_file, passed_bytes
from format_bench.api.run import run
from libraries.near_storage.client.cluster import TOKEN_VARIABLE, endpoints, read_endpoint
from libraries.near_storage.tests.serving.cluster import cluster
from tests.selfbench.costs import Check, print_checks

PAIRS = 3
FORMATS = ("parquet", "feather", "pickle", "orc")
"""Formats of the run, which are fast, so that the cost of the cluster would be seen."""
MOST_RATIO, MOST_PER_CHAIN_MS = 1.1, 20.0
WORKERS, MEMORY_BYTES = 2, 512_000_000
"""Number of dask workers, and the memory limit of each."""
TABLE_BYTES = 4 * WORKERS * MEMORY_BYTES
PARTITIONS = 128
COLUMNS = ("first", "second", "third", "fourth")
MOST_CLIENT_BYTES = 10_000_000
UNLIMITED_BYTES_PER_S = 1e12


def costs_of_local_cluster(folder: Path) -> Iterator[Check]:
    """Yield the ratio of the durations of a run with and without `local:1`, and the difference for each chain."""
    spent_s: dict[str | None, list[float]] = {None: [], "local:1": []}
    chains = 0
    for number in range(PAIRS):
        for where in [None, "local:1"][:: 1 if number % 2 else -1]:
            began_ns = now_ns()
            out = folder / f"{where}-{number}"
            found = run("tabular", formats=FORMATS, datasets=("eq",), rounds=5, out=out, cluster=where)
            spent_s[where].append((now_ns() - began_ns) / 1e9)
            executions = {(each.variant, each.conditions, each.round, each.rows) for each in found.run.samples}
            chains = len(executions)
    alone, over = (statistics.median(spent_s[where]) for where in (None, "local:1"))
    ratio, each_ms = over / alone, 1000 * (over - alone) / chains
    yield Check("run tabular: with local:1 / without", f"{ratio:.3f}", f"at most {MOST_RATIO}", ratio <= MOST_RATIO)
    target = f"at most {MOST_PER_CHAIN_MS:g} ms"
    yield Check(f"the same for each of {chains} chains", f"{each_ms:.1f} ms", target, each_ms <= MOST_PER_CHAIN_MS)


def bytes_through_the_client(folder: Path) -> Iterator[Check]:
    """Yield the bytes between the client and the rest, while workers sum a table that is larger than their memory."""
    (folder / "parts").mkdir()
    rows = TABLE_BYTES // PARTITIONS // 8 // len(COLUMNS)
    expected = np.zeros(len(COLUMNS), np.int64)
    for number in range(PARTITIONS):
        values = np.random.default_rng(number).integers(0, 2**32, (len(COLUMNS), rows))
        expected += values.sum(axis=1)
        columns = dict(zip(COLUMNS, values, strict=True))
        pq.write_table(pa.table(columns), folder / "parts" / f"{number:03}.parquet", compression="none")
    counters_file(folder / "counters")
    with cluster(folder / "service", nodes=1, replicas=1) as served:
        os.environ[TOKEN_VARIABLE] = served.token
        served.client().put("t", folder / "parts")
        proxy = Proxy(UNLIMITED_BYTES_PER_S, folder / "counters", 2)
        try:
            scheme, _, port = served.uri.rpartition(":")
            proxy.lead(0, int(port))
            with distributed.LocalCluster(
                n_workers=WORKERS,
                threads_per_worker=1,
                memory_limit=MEMORY_BYTES,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                local_directory=folder,
            ) as local:
                proxy.lead(1, int(local.scheduler_address.rpartition(":")[2]))
                with distributed.Client(f"tcp://127.0.0.1:{proxy.ports[1]}") as client:
                    uri = f"{scheme}:{proxy.ports[0]}"
                    frame = dd.from_map(read_endpoint, endpoints(uri, "t", where=pc.field("first") >= 0))
                    found = frame.sum().compute()
                    assert len(client.scheduler_info(n_workers=-1)["workers"]) == WORKERS
        finally:
            proxy.close()
    assert found.tolist() == expected.tolist(), "the workers' sums are wrong"
    passed = passed_bytes(folder / "counters")
    what = (
        f"bytes through the client for {TABLE_BYTES / 1e9:.1f} GB, workers with {WORKERS * MEMORY_BYTES / 1e9:.1f} GB"
    )
    yield Check(what, f"{passed / 1e6:.2f} MB", f"under {MOST_CLIENT_BYTES / 1e6:.0f} MB", passed < MOST_CLIENT_BYTES)


def main() -> None:
    """Print both parts."""
    parts = {"a cluster of one machine": costs_of_local_cluster, "near storage": bytes_through_the_client}
    for title, part in parts.items():
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
            print_checks(title, part(Path(name)))


if __name__ == "__main__":
    main()
