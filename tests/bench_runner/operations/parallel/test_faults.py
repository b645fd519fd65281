"""Faults of saving and reading in partitions: each is found, and costs its own sample only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PARQUET = "parquet[engine=pyarrow,codec=none]"
SAVE, LEFT = "save-parallel[partitions=2]", "read-parallel[partitions=2,result=left]"
GATHERED, COLD = "read-parallel[partitions=2,result=gathered]", "read-parallel[partitions=2,pool=cold,result=left]"
THREADS, SCAN = "read-parallel[partitions=3,by=threads,result=gathered]", "scan-parallel[partitions=3,selectivity=0.1]"
TRIAL = "from tests.bench_runner.operations.parallel.trial import main; main()"


def found(fault: str, operation: str, folder: Path, *, variant: str = PARQUET, target: str = "pandas") -> str:
    words = [fault, operation, variant, target, str(folder)]
    command = [sys.executable, "-c", TRIAL, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.rule(11)
@pytest.mark.parametrize(
    ("fault", "operation", "message"),
    [
        ("lost", SAVE, "mismatch 1 partitions are stored, not 2"),
        ("swapped", SAVE, "mismatch round trip differs"),
        ("twice", SAVE, "mismatch 3 partitions are stored, not 2"),
        ("repeated", SAVE, "mismatch round trip differs"),
        ("dies", SAVE, "process 2 of 2 ended while it was needed (exit code 7)"),
        ("dies_at_the_end", SAVE, "process 2 of 2 ended while it was needed (exit code -9)"),
        ("full", SAVE, "disk the disk is full"),
        ("stale", LEFT, "mismatch round trip differs: rows"),
        ("stale", GATHERED, "mismatch round trip differs: rows"),
    ],
)
def test_a_fault_is_found(fault: str, operation: str, message: str, tmp_path: Path) -> None:
    assert message in found(fault, operation, tmp_path)


@pytest.mark.slow
@pytest.mark.rule(7)
def test_partitions_that_stay_in_their_processes_may_not_be_mapped_from_files(tmp_path: Path) -> None:
    assert "are in a mapping of mapped-" in found("mapped", COLD, tmp_path, target="arrow")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "variant", "target"),
    [
        (SAVE, "lance[engine=pylance]", "arrow"),
        (COLD, PARQUET, "arrow"),
        (THREADS, "parquet[engine=duckdb,codec=none]", "pandas"),
        (SCAN, "csv[engine=pandas]", "pandas"),
    ],
)
def test_without_a_fault_the_answer_is_right(operation: str, variant: str, target: str, tmp_path: Path) -> None:
    assert found("none", operation, tmp_path, variant=variant, target=target).startswith("right exact")
