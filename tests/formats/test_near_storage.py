"""Metadata that the near-storage engine of Parquet holds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats.registry import FORMATS
from libraries.near_storage import local
from libraries.near_storage.reading import footers
from libraries.near_storage.storing.partition_metadata import PartitionInfo

FILES, TAKEN = 2, 5


@pytest.mark.parametrize(
    ("settings", "descriptions", "parsed_footers"), [("reader=ranges", TAKEN, 0), ("reader=parquet", 0, TAKEN)]
)
def test_metadata_of_each_file_are_taken_in_anew_and_by_one_reader_alone(
    settings: str, descriptions: int, parsed_footers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten files read once and combined 64 times would not be metadata of 640 files."""
    adapter = FORMATS.build(f"parquet[engine=near-storage,codec=snappy,{settings},row_group_rows=100,file_groups=2]")
    adapter.load_library()
    location = tmp_path / "copy"
    adapter.save(pa.table({"i": pa.array(range(350), pa.int64())}), location)
    handle = adapter.open(location)
    taken = {"descriptions": 0, "footers": 0}
    decode, read_metadata = PartitionInfo.decode, pq.read_metadata

    def decoded(data: bytes) -> PartitionInfo:
        taken["descriptions"] += 1
        return decode(data)

    def parsed(path: Path) -> pq.FileMetaData:
        taken["footers"] += 1
        return read_metadata(path)

    monkeypatch.setattr(PartitionInfo, "decode", staticmethod(decoded))
    monkeypatch.setattr(pq, "read_metadata", parsed)
    rows = handle.metadata(TAKEN)
    handle.close()
    assert taken == {"descriptions": descriptions, "footers": parsed_footers}
    assert rows["rows"].to_pylist() == [100, 100, 100, 50] * FILES + [100, 100]


@pytest.mark.parametrize(("settings", "at_open"), [("reader=ranges", 4), ("reader=parquet", 4), ("reader=fetch", 4),
                                                   ("reader=parquet,footers=parsed", 0)])  # fmt: skip
def test_footers_that_are_kept_are_read_in_opening(
    settings: str, at_open: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the first call that meets a file takes longer than others and reads more."""
    adapter = FORMATS.build(f"parquet[engine=near-storage,codec=snappy,{settings},row_group_rows=100,file_groups=1]")
    adapter.load_library()
    location = tmp_path / "copy"
    adapter.save(pa.table({"i": pa.array(range(350), pa.int64())}), location)
    parsed: list[int] = []

    def counted(footer_bytes: bytes, digest: str) -> footers.ParsedFooter:
        parsed.append(len(footer_bytes))
        return checked(footer_bytes, digest)

    checked = local.checked
    monkeypatch.setattr(local, "checked", counted)
    handle = adapter.open(location)
    assert len(parsed) == at_open
    assert handle.project(["i"]).num_rows == 350
    assert len(parsed) == 4
    handle.close()
