"""Invent a run of the suite `near-storage` with known figures, so that tests of reports need no measurements.

`python -m tests.reports.invented_near_storage FOLDER` writes the run as a result folder, to look at its pages.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench_runner.results.records import Conditions, Run, Sample, SampleWriter, write_run_info
from bench_runner.suites.near_storage import SHARES
from tests.reports.factory import make_run, make_sample, with_info

ENGINE = "parquet[engine=near-storage,codec=snappy,reader="
V1, V2, FETCH = f"{ENGINE}parquet]", f"{ENGINE}ranges]", f"{ENGINE}fetch]"
PARSED, NOTHING_OUT = f"{ENGINE}parquet,footers=parsed]", f"{ENGINE}parquet,technique=none]"
GROUPS_ALONE, SMALL = f"{ENGINE}parquet,technique=groups]", f"{ENGINE}ranges,row_group_rows=550]"
PYARROW, DUCKDB = f"{ENGINE}pyarrow]", f"{ENGINE}duckdb]"
STORED_BYTES = 200_000_000
ROWS = 1_000_000
DECODED_NS, LEAST_NS = 2_000_000_000, 2_000_000
"""Time to read everything, and the shortest time of a query."""
SLOWER = {V2: 1.0, V1: 1.4, PARSED: 1.4, GROUPS_ALONE: 1.3, NOTHING_OUT: 1.4, PYARROW: 0.8, DUCKDB: 0.9, SMALL: 2.0}
OTHERS = (
    "query[groups=0.1,place=scattered]",
    "query[groups=0.01,place=scattered]",
    "query[groups=0.01,values=100]",
    "query[groups=0.01,values=100,columns=1]",
    "aggregate[groups=0.01,values=100]",
)
METADATA = tuple(f"metadata[files={files}]" for files in (10, 640))
KILOBYTES_A_FILE = {V2: 80, V1: 2_000, PARSED: 300}
LINES = {"": float("inf"), "loopback": 1e9, "100mbit": 12.5e6}
"""Bytes per second."""


def wire_bytes(variant: str, share: float) -> int:
    """Return the bytes sent for an answer: all bytes if everything is fetched, else slightly more than the requested
    part."""
    return STORED_BYTES if variant == FETCH else int(share * STORED_BYTES * 1.2) + 10_000


def wall_ns(variant: str, share: float, network: str) -> int:
    """One column takes a tenth of the work."""
    read = 1.0 if variant in (FETCH, NOTHING_OUT) else share
    working = LEAST_NS + SLOWER.get(variant, 0.9) * read * DECODED_NS
    working += 20_000_000 if variant == PARSED else 0
    return int(working + wire_bytes(variant, share) / LINES[network] * 1e9)


def near_storage_run(*, rounds: int = 5, networks: tuple[str, ...] = tuple(LINES), seed: int = 3) -> Run:
    """Return samples of all variants, networks and operations. Each round is a little slower than the one before."""
    noise = random.Random(seed)
    samples = [
        each
        for number in range(1, rounds + 1)
        for network in networks
        for variant in (V2, V1, PARSED, GROUPS_ALONE, NOTHING_OUT, FETCH, PYARROW, DUCKDB, SMALL)
        if not (network and variant in (PYARROW, DUCKDB))
        for each in _of_chain(variant, network, number, noise)
    ]
    about = {
        "suites": {"near-storage": "What does a query of Parquet files cost near the storage?"},
        "operations": {
            "save": {"title": "save", "writes": True, "meaning": "the whole table from memory to disk"},
            "read": {"title": "read", "writes": False, "meaning": "the whole table from disk to memory"},
        },
    }
    made = with_info(make_run(datasets=("eq",), tracks=("plain",), rounds=1), **about)
    return replace(made, samples=tuple(samples))


def _of_chain(variant: str, network: str, number: int, noise: random.Random) -> Iterator[Sample]:
    conditions = Conditions(target="arrow", track="access", network=network, service="warm" if network else "")

    def sample(operation: str, **figures: int) -> Sample:
        return make_sample(
            suite="near-storage",
            dataset="snowset",
            rows=ROWS,
            variant=variant,
            conditions=conditions,
            round=number,
            operation=operation,
            figures=figures,
            fidelity="exact" if operation == "read" else None,
        )

    def query(operation: str, share: float, part: float = 1.0) -> Sample:
        slower = (1 + number / 200) * noise.uniform(0.99, 1.01)
        wall = int(wall_ns(variant, share * part, network) * slower)
        figures = {"wall_ns": wall, "cpu_ns": wall // 2, "peak_private_bytes": int(share * 400e6) + 1_000_000}
        if network:
            figures |= {
                "node_cpu_ns": wall // 4,
                "node_memory_bytes": 85_000_000,
                "node_peak_memory_bytes": int(share * 30e6),
                "node_device_bytes": 0,
                "wire_bytes": int(wire_bytes(variant, share * part)),
            }
        return sample(operation, **figures)

    yield sample("save", wall_ns=3 * 10**9, size_bytes=STORED_BYTES)
    yield query("read", 1.0)
    for share in SHARES:
        yield query(f"query[groups={share}]", float(share))
    for operation in OTHERS:
        share = 0.1 if "groups=0.1," in operation else 0.01
        yield query(operation, share, 0.1 if "columns" in operation or "aggregate" in operation else 1.0)
    if not network and variant in KILOBYTES_A_FILE:
        for operation in METADATA:
            files = int(operation.partition("=")[2].removesuffix("]"))
            taken = KILOBYTES_A_FILE[variant] * 1_000 * files
            yield sample(operation, wall_ns=files * 10_000, peak_private_bytes=taken)


def main() -> None:
    """Write the run to the folder given on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    run = near_storage_run()
    write_run_info(folder, run.info.shape())
    writer = SampleWriter(folder)
    for position, sample in enumerate(run.samples):
        writer.append(replace_position(sample, position))


def replace_position(sample: Sample, position: int) -> Sample:
    """Return the sample at its place in the run."""
    from bench_runner.results.records import changed

    return changed(sample, position=position)


if __name__ == "__main__":
    main()
