"""Tables for the tests of libraries/f3, and helpers to store them without a real encoding."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa

from libraries import f3
from libraries.f3.tests import plain_coding


def stored(table: Any, **parameters: Any) -> io.BytesIO:
    """Store a table as a file in memory."""
    out = io.BytesIO()
    f3.write(table, out, **{"coding": plain_coding} | parameters)
    return out


def opened(file: Any, **parameters: Any) -> f3.File:
    """Open a file that `stored` made, or its bytes."""
    return f3.open(io.BytesIO(file) if isinstance(file, bytes) else file, coding=plain_coding, **parameters)


def varied(rows: int = 1000) -> pa.Table:
    """Return columns of all shapes: flat ones with and without nulls, lists, structs, and nested combinations."""
    random = np.random.default_rng(1)
    count = range(rows)
    return pa.table(
        {
            "int": pa.array(random.integers(0, 50, rows), mask=random.random(rows) < 0.1),
            "float": random.random(rows),
            "text": pa.array([None if row % 7 == 0 else f"v{row % 30}" for row in count], pa.string()),
            "bool": pa.array(random.random(rows) < 0.5),
            "list": pa.array([None if row % 5 == 0 else list(range(row % 4)) for row in count], pa.list_(pa.int64())),
            "deep": pa.array([None if row % 5 == 0 else _deep(row) for row in count], _DEEP),
            "struct": pa.array([None if row % 3 == 0 else {"a": row, "b": [row, None]} for row in count], _STRUCT),
            "long": pa.array([f"v{row % 30}" for row in count], pa.large_string()),
            "time": pa.array(random.integers(0, 50, rows)).cast(pa.timestamp("us", "UTC")),
        }
    )


_DEEP = pa.large_list(pa.list_(pa.struct({"x": pa.int32(), "y": pa.string()})))
_STRUCT = pa.struct({"a": pa.int64(), "b": pa.list_(pa.int64())})


def _deep(row: int) -> list[list[dict[str, Any] | None]]:
    return [[{"x": place, "y": str(place)} if place else None] * place for place in range(row % 4)]
