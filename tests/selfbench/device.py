"""Compare the probe of the device with fio: part of `make selfbench`.

Both read the same file in turns, with the same read size, queue depth and number of jobs. Debian's package is `fio`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from bench_runner.machine import linux
from bench_runner.machine.device.reads import Reads, direct_reads
from bench_runner.machine.device.roofline import LARGE_BYTES, SMALL_BYTES
from bench_runner.results.statistics import ratio_interval
from tests.selfbench.costs import Check, print_checks

PAIRS = 7
"""Taken in turns."""
SECONDS = 1
"""Duration of each run of either program."""
FILE_BYTES = 256 * 1024 * 1024
PLACES = ((SMALL_BYTES, 1), (SMALL_BYTES, 16), (SMALL_BYTES, 64), (LARGE_BYTES, 16))
LEAST = 0.9


def ratios_to_fio(folder: Path) -> Iterator[Check]:
    """Yield the ratio of our reads per second to fio's, for each size and depth."""
    target = f"at least {LEAST}"
    if shutil.which("fio") is None:
        yield Check("reads per second: ours/fio", "fio is missing: apt-get install fio", target, None)
        return
    path = folder / "probed"
    path.write_bytes(np.random.default_rng(1).bytes(FILE_BYTES))
    linux.fsync_all(path)
    for size_bytes, depth in PLACES:
        ours: dict[int, float] = {}
        theirs: dict[int, float] = {}
        for number in range(PAIRS):
            for found, measure in [(ours, _by_us), (theirs, _by_fio)][:: 1 if number % 2 else -1]:
                found[number] = measure(path, size_bytes, depth, number)
        yield _compared(size_bytes, depth, ours, theirs, target)


def _compared(
    size_bytes: int, depth: int, ours: Mapping[int, float], theirs: Mapping[int, float], target: str
) -> Check:
    ratio = ratio_interval(ours, theirs)
    assert ratio is not None
    measured = f"{ratio.ratio:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"
    what = f"{size_bytes // 1024} KiB at random, {depth} at a time: ours/fio, reads per second"
    return Check(what, measured, target, ratio.ratio >= LEAST)


def _by_us(path: Path, size_bytes: int, depth: int, number: int) -> float:
    random = np.random.default_rng(number)
    offsets = random.integers(0, FILE_BYTES // size_bytes, 1_000_000, np.uint64) * np.uint64(size_bytes)
    found: Reads = direct_reads(path, offsets, size_bytes, depth, limit_s=SECONDS)
    return found.per_second


def _by_fio(path: Path, size_bytes: int, depth: int, number: int) -> float:
    asked = {
        "name": "probe",
        "filename": path,
        "rw": "randread",
        "bs": size_bytes,
        "iodepth": depth,
        "ioengine": "libaio",
        "direct": 1,
        "numjobs": 1,
        "runtime": SECONDS,
        "randseed": number + 1,
        "output-format": "json",
    }
    words = [f"--{key}={value}" for key, value in asked.items()]
    command = ["fio", "--time_based", "--readonly", "--norandommap", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (job,) = json.loads(done.stdout)["jobs"]
    return float(job["read"]["iops"])


def main() -> None:
    """Print the reads per second of the probe as multiples of fio's."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
        print_checks("the probe of the device", ratios_to_fio(Path(name)))


if __name__ == "__main__":
    main()
