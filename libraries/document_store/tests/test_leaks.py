"""C frees what it allocates, for valid batches and for those that it refuses.

The sanitiser does not search for leaks: it would report only memory that the interpreter keeps.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from libraries.document_store import kernels

pytestmark = pytest.mark.skipif(not kernels.NATIVE, reason="the kernels are not built: python -m libraries.build")

ROOT = Path(__file__).parents[3]
MOST_BYTES = 120_000
"""Growth that is allowed in a third of the calls, because the interpreter's pools still grow by some pages."""


def grown(times: int, *lost: str) -> dict[str, int]:
    command = [sys.executable, "-m", "libraries.document_store.tests.leaks", str(times), *lost]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    return {name: int(size) for size, name in (line.split("\t") for line in told.splitlines())}


def test_memory_stays_over_thousands_of_batches():
    found = grown(1_000)
    assert len(found) == 15
    assert max(found.values()) <= MOST_BYTES, found


def test_what_is_not_given_back_is_seen():
    lost = {
        "ds_free_shredder": {"rows shredded", "broken rows shredded"},
        "ds_free_decoded": {"columns decoded", "broken columns decoded"},
        "ds_free": {"rows assembled", "broken columns assembled"},
    }
    found = grown(600, *lost)
    assert {name for name, size in found.items() if size > MOST_BYTES} == set().union(*lost.values()), found
