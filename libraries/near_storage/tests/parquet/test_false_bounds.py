"""Bounds of a writer that is known to write wrong ones are ignored."""

from __future__ import annotations

from pathlib import Path

import fastparquet
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.local import LocalFiles
from libraries.near_storage.parquet.compact import from_footer
from libraries.near_storage.parquet.footer import LAST_FALSE_FASTPARQUET, has_false_bounds, read_footer
from libraries.near_storage.predicates.sql import parse

DAYS = pd.to_datetime(["2020-01-05", "2020-01-03", "2020-01-09"])
CATEGORIES = {
    "int64": (np.array([5, 3, 9]), "3"),
    "int8": (np.array([5, 3, 9], np.int8), "3"),
    "float64": (np.array([5.0, 3.0, 9.0]), "3.0"),
    "timestamp": (DAYS, "TIMESTAMP '2020-01-03 00:00:00'"),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_no_row_of_a_categorical_column_is_lost(kind: str, tmp_path: Path):
    values, least = CATEGORIES[kind]
    path = tmp_path / "t.parquet"
    categories = pd.Series(pd.Categorical(values, categories=values))
    fastparquet.write(str(path), pd.DataFrame({"c": categories}), stats=True)
    stored = pq.read_metadata(path)
    told = stored.row_group(0).column(0).statistics.min
    assert told > sorted(pq.ParquetFile(path).read()["c"].to_pylist())[0], (
        f"{stored.created_by} writes correct bounds, but is above LAST_FALSE_FASTPARQUET"
    )
    answer, report = LocalFiles.prepare([path]).query(parse(f"SELECT c FROM t WHERE c = {least}"))
    assert (answer.num_rows, report.row_groups_chosen) == (1, 1)


def test_nulls_are_still_known(tmp_path: Path):
    path = tmp_path / "t.parquet"
    numbers = pd.array([1, None, None, None], "Int64")
    fastparquet.write(str(path), pd.DataFrame({"c": numbers}), row_group_offsets=2, stats=True)
    with path.open("rb") as file:
        footer = read_footer(file)
    assert [group.chunks[0].statistics.nulls for group in footer.row_groups] == [1, 2]
    assert from_footer(footer).groups == 2
    _, report = LocalFiles.prepare([path]).query(parse("SELECT c FROM t WHERE c = 1"))
    assert report.row_groups_chosen == 1


@pytest.mark.parametrize(
    ("created_by", "false"),
    [
        (b"fastparquet-python version 2026.9.0 (build 0)", True),
        (b"fastparquet-python version 1.0.0 (build 111)", True),
        (b"fastparquet-python version 2024.11.0 (build 0)", True),
        (b"fastparquet", True),
        (b"fastparquet-python version 2026.9.1 (build 0)", False),
        (b"fastparquet-python version 2027.1.0 (build 0)", False),
        (b"parquet-cpp-arrow version 2.0.0", False),
        (b"", False),
    ],
)
def test_which_releases_are_meant(created_by: bytes, false: bool):
    assert has_false_bounds(created_by) is false


def test_the_last_release_is_the_one_that_was_tried():
    """A later release fails the tests above, or must be added as well."""
    installed = tuple(int(part) for part in fastparquet.__version__.split(".")[:3])
    assert installed == LAST_FALSE_FASTPARQUET, "test this release, and name it here if its bounds are still wrong"
