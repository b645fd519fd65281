"""Parquet footers are read for all row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters import parquet_codecs
from adapters.errors import AdapterError

SOUND: dict[str, Any] = {"row_group_rows": None, "page_index": False, "dictionary": True, "statistics": True}
PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_statistics": False}


def footer(folder: Path, *groups: dict[str, Any]) -> pq.FileMetaData:
    """Return the footer of a file with a row group of ten rows for each of these ways to write one."""
    whole = None
    for number, group in enumerate(groups):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"s": ["a", "b"] * 5}), path, **group)
        if whole is None:
            whole = pq.read_metadata(path)
        else:
            whole.append_row_groups(pq.read_metadata(path))
    assert whole is not None
    return whole


def test_codecs_of_several_row_groups_are_joined(tmp_path: Path) -> None:
    found = parquet_codecs.stored_of(footer(tmp_path, PLAIN, PLAIN, {**PLAIN, "compression": "zstd"}))
    assert (found.codec, found.details) == ("none+zstd", {"row groups": "3"})
    assert parquet_codecs.stored_of(footer(tmp_path, PLAIN, PLAIN)).codec == "none"


@pytest.mark.parametrize(
    ("said", "group", "words"),
    [
        ({"dictionary": False}, {**PLAIN, "use_dictionary": True}, "has a dictionary"),
        ({"statistics": False}, {**PLAIN, "write_statistics": True}, "has statistics"),
        ({"page_index": True}, PLAIN, "has no page index"),
        ({"row_group_rows": 9}, PLAIN, "row groups of 10 rows; its variant sets row_group_rows=9"),
    ],
)
def test_a_later_row_group_that_is_written_otherwise_is_found(
    said: dict[str, Any], group: dict[str, Any], words: str, tmp_path: Path
) -> None:
    first = {**PLAIN, "write_page_index": True}
    asked = {**SOUND, "dictionary": False, "statistics": False, **said}
    with pytest.raises(AdapterError, match=words):
        parquet_codecs.check_layout(footer(tmp_path, first, group), **asked)


def test_the_row_group_that_differs_is_named(tmp_path: Path) -> None:
    for number, rows in enumerate((10, 7, 10)):
        pq.write_table(pa.table({"s": ["a"] * rows}), tmp_path / f"{number}.parquet")
    whole = pq.read_metadata(tmp_path / "0.parquet")
    for number in (1, 2):
        whole.append_row_groups(pq.read_metadata(tmp_path / f"{number}.parquet"))
    with pytest.raises(AdapterError, match="row groups of 7 rows; its variant sets row_group_rows=10"):
        parquet_codecs.check_layout(whole, **{**SOUND, "row_group_rows": 10})


def test_a_file_that_is_written_so_is_sound(tmp_path: Path) -> None:
    parquet_codecs.check_layout(footer(tmp_path, PLAIN), **{**SOUND, "dictionary": False, "statistics": False})
    parquet_codecs.check_layout(footer(tmp_path, PLAIN, PLAIN), **{**SOUND, "row_group_rows": 10})
    # The last row group may be shorter, but not longer.
    parquet_codecs.check_layout(footer(tmp_path, PLAIN), **{**SOUND, "row_group_rows": 11})
    with pytest.raises(AdapterError, match="a row group of 10 rows; its variant sets row_group_rows=9"):
        parquet_codecs.check_layout(footer(tmp_path, PLAIN), **{**SOUND, "row_group_rows": 9})
