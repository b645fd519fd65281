"""Measure what a cluster costs: `make selfbench-cluster`.

A run over `local:1` is compared with the same run without a cluster, in turns. Then the workers of a cluster sum the
columns of a table that is four times as large as their memory, and the bytes that pass the client are counted: once
near the storage, and once by each engine of dask that the suite `parallel` measures.
"""

from __future__ import annotations

import operator
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache, reduce
from pathlib import Path
from typing import cast

import click
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench_runner.clock import now_ns
from bench_runner.run.services.proxy import Proxy, counters_file, passed_bytes
from format_bench.api.run import run
from formats.registry import FORMATS
from formats.shared.dask_engine import DaskEngine
from libraries.near_storage.client.cluster import TOKEN_VARIABLE, endpoints, read_endpoint
from libraries.near_storage.tests.serving.cluster import cluster
from tests.selfbench.costs import Check, print_checks

PAIRS = 3
FORMATS_OF_RUN = ("parquet", "feather", "pickle", "orc")
"""Formats of the run, which are fast, so that the cost of the cluster would be seen."""
MOST_RATIO, MOST_PER_CHAIN_MS = 1.1, 20.0
WORKERS, MEMORY_BYTES = 2, 512_000_000
"""Number of dask workers, and the memory limit of each."""
TABLE_BYTES = 4 * WORKERS * MEMORY_BYTES
PARTITIONS = 128
COLUMNS = ("first", "second", "third", "fourth")
DASK_VARIANTS = ("parquet[engine=dask,codec=none]", "orc[engine=dask,codec=none]", "hdf5-table[engine=dask]")
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
            found = run("tabular", formats=FORMATS_OF_RUN, datasets=("eq",), rounds=5, out=out, cluster=where)
            spent_s[where].append((now_ns() - began_ns) / 1e9)
            executions = {(each.variant, each.conditions, each.round, each.rows) for each in found.run.samples}
            chains = len(executions)
    alone, over = (statistics.median(spent_s[where]) for where in (None, "local:1"))
    ratio, each_ms = over / alone, 1000 * (over - alone) / chains
    yield Check("run tabular: with local:1 / without", f"{ratio:.3f}", f"at most {MOST_RATIO}", ratio <= MOST_RATIO)
    target = f"at most {MOST_PER_CHAIN_MS:g} ms"
    yield Check(f"the same for each of {chains} chains", f"{each_ms:.1f} ms", target, each_ms <= MOST_PER_CHAIN_MS)


def partition(number: int) -> pd.DataFrame:
    """Return a partition of the table, all of whose columns are integers."""
    rows = TABLE_BYTES // PARTITIONS // 8 // len(COLUMNS)
    values = np.random.default_rng(number).integers(0, 2**32, (len(COLUMNS), rows))
    return pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))


@contextmanager
def workers_with_little_memory(folder: Path, proxy: Proxy, place: int) -> Iterator[None]:
    """Start the workers, and connect this process with their scheduler through the proxy. Raises RuntimeError if a
    worker has been replaced, as it is when it needs more than its memory."""
    with distributed.LocalCluster(
        n_workers=WORKERS,
        threads_per_worker=1,
        memory_limit=MEMORY_BYTES,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        local_directory=folder,
    ) as local:
        proxy.lead(place, int(local.scheduler_address.rpartition(":")[2]))
        with distributed.Client(f"tcp://127.0.0.1:{proxy.ports[place]}") as client:
            before = client.scheduler_info(n_workers=-1)["workers"].keys()
            yield
            if client.scheduler_info(n_workers=-1)["workers"].keys() != before:
                raise RuntimeError("a worker has ended while it was needed")


def near_the_storage(folder: Path) -> Iterator[Check]:
    """Yield the bytes between the client and the rest, while workers sum a table that a service holds."""
    (folder / "parts").mkdir()
    for number in range(PARTITIONS):
        table = pa.Table.from_pandas(partition(number), preserve_index=False)
        pq.write_table(table, folder / "parts" / f"{number:03}.parquet", compression="none")
    counters_file(folder / "counters")
    with cluster(folder / "service", nodes=1, replicas=1) as served:
        os.environ[TOKEN_VARIABLE] = served.token
        served.client().put("t", folder / "parts")
        with closing(Proxy(UNLIMITED_BYTES_PER_S, folder / "counters", 2)) as proxy:
            scheme, _, port = served.uri.rpartition(":")
            proxy.lead(0, int(port))
            with workers_with_little_memory(folder, proxy, 1):
                uri = f"{scheme}:{proxy.ports[0]}"
                frame = dd.from_map(read_endpoint, endpoints(uri, "t", where=pc.field("first") >= 0))
                found = frame.sum().compute()
    yield _passed("near the storage", found, folder)


def engines_of_dask(folder: Path) -> Iterator[Check]:
    """Yield the same for files that the workers make, store and sum by the calls of the suite `parallel`."""
    for variant in DASK_VARIANTS:
        adapter = cast(DaskEngine, FORMATS.build(variant))
        adapter.load_library()
        counters_file(folder / "counters")
        (folder / "parts").mkdir()
        proxy = Proxy(UNLIMITED_BYTES_PER_S, folder / "counters", 1)
        with closing(proxy), workers_with_little_memory(folder, proxy, 0):
            adapter.write(dd.from_map(partition, range(PARTITIONS)), folder / "parts")
            found = adapter.parts_frame(folder / "parts").sum().compute()
        yield _passed(adapter.variant, found, folder)
        shutil.rmtree(folder / "parts")


@lru_cache(maxsize=1)
def _expected() -> list[int]:
    return reduce(operator.add, (partition(number).sum() for number in range(PARTITIONS))).tolist()


def _passed(where: str, found: pd.Series, folder: Path) -> Check:
    if found.tolist() != _expected():
        raise RuntimeError(f"{where}: the workers' sums are wrong")
    passed = passed_bytes(folder / "counters")
    sizes = f"{TABLE_BYTES / 1e9:.1f} GB, workers with {WORKERS * MEMORY_BYTES / 1e9:.1f} GB"
    target = f"under {MOST_CLIENT_BYTES / 1e6:.0f} MB"
    return Check(f"{where}: client's bytes ({sizes})", f"{passed / 1e6:.2f} MB", target, passed < MOST_CLIENT_BYTES)


@click.command()
@click.option("--only", multiple=True, type=click.Choice(("cost", "near-storage", "dask")), help="Only this part.")
def main(only: tuple[str, ...]) -> None:
    """Print all parts, or those that are named."""
    parts = {"cost": costs_of_local_cluster, "near-storage": near_the_storage, "dask": engines_of_dask}
    for title, part in parts.items():
        if only and title not in only:
            continue
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
            print_checks(title, part(Path(name)))


if __name__ == "__main__":
    main()
