"""Streams: the memory to write and read a table depends on the size of its units, not on its number of rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

STREAM = """
import gc, json, re, sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from libraries import f3

SCHEMA = pa.schema({"i": pa.int64(), "f": pa.float64(), "s": pa.string()})
ROWS = 8_192


def highest_bytes():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def growth_of(what):
    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")
    before = highest_bytes()
    what()
    return highest_bytes() - before


def stream(path, batches, units, hold):
    numbers = np.random.default_rng(1)
    seen = {"table": 0, "rows": 0}

    def write():
        with f3.Writer(path, SCHEMA, **units) as writer:
            for _ in range(batches):
                digits = numbers.integers(48, 58, (ROWS, 9), np.uint8)
                spelled = np.hstack([np.broadcast_to(np.frombuffer(b"text ", np.uint8), (ROWS, 5)), digits])
                ends = pa.py_buffer(np.arange(0, 14 * ROWS + 1, 14, dtype=np.int32))
                texts = pa.Array.from_buffers(pa.string(), ROWS, [None, ends, pa.py_buffer(spelled)])
                columns = [numbers.integers(0, 2**62, ROWS), numbers.random(ROWS), texts]
                batch = pa.record_batch([pa.array(each) for each in columns], schema=SCHEMA)
                seen["table"] += batch.nbytes
                writer.write_batch(batch)

    def read():
        held = []
        with f3.open(path) as file:
            for batch in file.batches():
                seen["rows"] += batch.num_rows
                if hold:
                    held.append(batch)

    told = {"write": growth_of(write), "read": growth_of(read), **seen}
    Path(path).unlink()
    return told


path, units, hold = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "hold"
stream(path, 4, units, False)
print(json.dumps([stream(path, int(batches), units, hold) for batches in sys.argv[4:]]))
"""


FEW, MANY = 8, 48
"""Numbers of batches. A batch has 65,536 rows."""
WHOLE = 96
"""Number of batches of a table that is far larger than one unit of each column."""


def streamed(path: Path, units: dict[str, int], *batches: int, hold: str = "") -> list[dict[str, int]]:
    """Return the growth of resident memory while tables of these batches are written and read, in one process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", STREAM, str(path), json.dumps(units), hold, *map(str, batches)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout)


SMALL_UNITS = {"rows_per_unit": 4_096, "unit_bytes": 65_536}


@pytest.mark.parametrize("units", [SMALL_UNITS, {**SMALL_UNITS, "row_group_rows": 50_000}], ids=["one group", "groups"])
def test_memory_does_not_grow_with_the_rows(tmp_path, units):
    few, many = streamed(tmp_path / "t.f3", units, FEW, MANY)
    assert many["rows"] == 6 * few["rows"] == MANY * 8_192
    for way in ("write", "read"):
        assert many[way] < few[way] + 2_000_000, (few, many)
        assert many[way] < many["table"] / 3, many


def test_what_is_held_is_a_unit_of_each_column(tmp_path):
    (many,) = streamed(tmp_path / "t.f3", {"unit_bytes": 1_048_576}, WHOLE)
    # Input comes in batches of 8,192 rows; a unit has 65,536 rows, about 2 MB in all three columns.
    assert many["write"] < 3 * 1_048_576 + 5 * 2_200_000 + 4_000_000
    # Only the requested units are read, not whole IOUnits, whose default size is 8 MiB.
    (many,) = streamed(tmp_path / "t.f3", {}, WHOLE)
    assert many["read"] < 5 * 2_200_000 + 4_000_000


def test_the_measure_sees_a_table_that_is_held(tmp_path):
    (many,) = streamed(tmp_path / "t.f3", SMALL_UNITS, MANY // 2, hold="hold")
    assert many["read"] > 0.8 * many["table"]
