"""Answers of a worker whose job fails."""

from __future__ import annotations

import pytest

from adapters.errors import RefusedData
from bench_runner.worker.jobs import classify
from bench_runner.worker.verify import Mismatch

REASONS = [
    (OSError(28, "No space left on device"), "disk", "the disk is full"),
    (OSError(122, "Disk quota exceeded"), "disk", "the disk is full"),
    (ValueError("IOError: [Errno 28] No space left on device"), "disk", "the disk is full"),
    (OSError(13, "Permission denied"), "error", "PermissionError"),
    (MemoryError(), "memory", "MemoryError: no message"),
    (RefusedData("no tables on Saturdays"), "refused", "no tables on Saturdays"),
    (TypeError("a fault in our code"), "error", "TypeError: a fault in our code"),
    (NotImplementedError("so is this"), "error", "NotImplementedError"),
    (Mismatch("rows: 1, not 2"), "mismatch", "rows: 1, not 2"),
    (SystemExit(0), "error", "SystemExit"),
]


@pytest.mark.parametrize(("error", "kind", "words"), REASONS)
def test_an_error_has_its_kind(error: BaseException, kind: str, words: str) -> None:
    found = classify(error)
    assert found.kind == kind
    assert words in found.reason
