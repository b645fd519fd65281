"""Convert a CSV file that is larger than the memory that the conversion may take: `make selfbench-convert`.

A conversion is killed half-way first; nothing may be left of it. Then the file is converted, and the memory of all
processes together is read ten times a second.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench_runner.clock import now_ns, pause
from tests.selfbench.costs import Check, print_checks

ROOT = Path(__file__).parents[2]
ROWS_AT_ONCE = 500_000
MOST_BYTES = 2_000_000_000
LOOK_S = 0.1


def make_csv(path: Path, size_bytes: int) -> int:
    """Write a CSV file of about this size with integers, floats, texts and timestamps, and return its rows."""
    generator = np.random.default_rng(1)
    words = np.array([f"word {number:05} of a sentence" for number in range(50_000)])
    rows = 0
    with path.open("wb") as file:
        while file.tell() < size_bytes:
            table = pa.table(
                {
                    "id": np.arange(rows, rows + ROWS_AT_ONCE),
                    "moment": pa.array(np.arange(rows, rows + ROWS_AT_ONCE) + 1_700_000_000, pa.timestamp("s")),
                    "price": generator.integers(0, 10**7, ROWS_AT_ONCE) / 100,
                    "amount": generator.integers(0, 1000, ROWS_AT_ONCE),
                    "text": generator.choice(words, ROWS_AT_ONCE),
                    "kind": generator.choice(np.array(["red", "green", "blue"]), ROWS_AT_ONCE),
                    "ratio": generator.normal(size=ROWS_AT_ONCE),
                }
            )
            pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(include_header=rows == 0))
            rows += ROWS_AT_ONCE
    return rows


def started(source: Path, out: Path) -> subprocess.Popen[bytes]:
    """Return a process that converts a file."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), "convert", str(source), str(out), "--as", "parquet"]
    )


def memory_bytes(process: psutil.Process) -> int:
    """Return the memory of a process and of all that it has started, without what they share twice."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def checks(folder: Path, size_bytes: int) -> Iterator[Check]:
    """Yield what a conversion that is killed leaves, the memory of one that ends, and its speed."""
    source, out = folder / "in.csv", folder / "out.parquet"
    rows = make_csv(source, size_bytes)
    killed = started(source, out)
    while not list(folder.glob("format-bench-convert-*/out.parquet")) and killed.poll() is None:
        pause(LOOK_S)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    pause(2.0)
    left = sorted(path.name for path in folder.iterdir() if path != source)
    yield Check("files left of a conversion that was killed", str(len(left)), "0", not left)
    began_ns = now_ns()
    process = started(source, out)
    watched, peak_bytes = psutil.Process(process.pid), 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, memory_bytes(watched))
        pause(LOOK_S)
    seconds = (now_ns() - began_ns) / 1e9
    stored = pq.read_metadata(out).num_rows if out.exists() else 0
    yield Check("rows converted", f"{stored:,}", f"{rows:,}", stored == rows)
    yield Check(
        f"peak memory of all processes, {source.stat().st_size / 1e9:.1f} GB of CSV",
        f"{peak_bytes / 1e9:.2f} GB",
        f"at most {MOST_BYTES / 1e9:g} GB",
        peak_bytes <= MOST_BYTES,
    )
    yield Check("time", f"{seconds:.0f} s, {source.stat().st_size / 1e6 / seconds:.0f} MB/s", "-", True)


@click.command()
@click.option("--gigabytes", default=6.0, show_default=True, help="Size of the CSV file.")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder of the files. [default: a temporary one]")
def main(gigabytes: float, folder: Path | None) -> None:
    """Convert a large CSV file, and print memory and speed."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        print_checks("convert", checks(Path(place), int(gigabytes * 1e9)))


if __name__ == "__main__":
    main()
