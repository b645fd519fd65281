"""Faults of saving and reading in partitions: each is found, and costs its own sample only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
PARQUET = "parquet[engine=pyarrow,codec=none]"
SAVE, LEFT = "save-parallel[partitions=2]", "read-parallel[partitions=2,result=left]"
GATHERED, COLD = "read-parallel[partitions=2,result=gathered]", "read-parallel[partitions=2,pool=cold,result=left]"
THREADS, SCAN = "read-parallel[partitions=3,by=threads,result=gathered]", "scan-parallel[partitions=3,selectivity=0.1]"

Trial = tuple[str, str, str, str]
"""Fault, operation, variant and target."""

FAULTS: Mapping[Trial, str] = {
    ("lost", SAVE, PARQUET, "pandas"): "mismatch 1 partitions are stored, expected 2",
    ("swapped", SAVE, PARQUET, "pandas"): "mismatch round trip differs",
    ("twice", SAVE, PARQUET, "pandas"): "mismatch 3 partitions are stored, expected 2",
    ("repeated", SAVE, PARQUET, "pandas"): "mismatch round trip differs",
    ("dies", SAVE, PARQUET, "pandas"): "process 2 of 2 ended while it was needed (exit code 7)",
    ("dies_at_the_end", SAVE, PARQUET, "pandas"): "process 2 of 2 ended while it was needed (exit code -9)",
    ("full", SAVE, PARQUET, "pandas"): "disk the disk is full",
    ("stale", LEFT, PARQUET, "pandas"): "mismatch round trip differs: rows",
    ("stale", GATHERED, PARQUET, "pandas"): "mismatch round trip differs: rows",
    ("dies_by_dask", GATHERED, "csv[engine=dask]", "pandas"): "process 2 of 2 ended while it was needed",
    ("mapped", COLD, PARQUET, "arrow"): "bytes of the result are in a mapping of mapped-",
}
"""Each with a part of the message that it must lead to."""
RIGHT: tuple[Trial, ...] = (
    ("none", SAVE, "lance[engine=pylance]", "arrow"),
    ("none", COLD, PARQUET, "arrow"),
    ("none", GATHERED, PARQUET, "pandas"),
    ("none", THREADS, "parquet[engine=duckdb,codec=none]", "pandas"),
    ("none", THREADS, "parquet[engine=polars,codec=none]", "pandas"),
    ("none", SCAN, "csv[engine=pandas]", "pandas"),
    ("few", COLD, PARQUET, "pandas"),
    ("few", "save-parallel[partitions=2,pool=cold]", PARQUET, "pandas"),
    ("prompt_save", "save-parallel[partitions=2,pool=cold]", PARQUET, "pandas"),
    ("prompt_read", COLD, PARQUET, "pandas"),
    ("none", SAVE, "hdf5-table[engine=dask]", "pandas"),
    ("none", LEFT, "orc[engine=dask,codec=none]", "pandas"),
    ("none", GATHERED, "csv[engine=dask]", "pandas"),
    ("none", SCAN, "parquet[engine=dask,codec=none]", "arrow"),
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Trial, str]:
    trials = [*FAULTS, *RIGHT]
    code = "from tests.bench_runner.operations.parallel.trial import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path_factory.mktemp("trials"))],
        cwd=ROOT,
        input=json.dumps(trials),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(trials), done.stdout + done.stderr
    return dict(zip(trials, lines, strict=True))


@pytest.mark.rule(7, 11)
@pytest.mark.parametrize("trial", FAULTS, ids=lambda trial: f"{trial[0]}-{trial[1].partition('-')[0]}")
def test_a_fault_is_found(trial: Trial, found: Mapping[Trial, str]) -> None:
    assert FAULTS[trial] in found[trial]


@pytest.mark.parametrize("trial", RIGHT, ids=lambda trial: f"{trial[1].partition('[')[0]}-{trial[2].partition('[')[0]}")
def test_without_a_fault_the_answer_is_right(trial: Trial, found: Mapping[Trial, str]) -> None:
    assert found[trial] == "right exact"
