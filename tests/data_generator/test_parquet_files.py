"""Parquet files of a data set: the requested layout, complete or written again, and links that take no space."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_generator import parquet_files
from data_generator.catalogue import resolve
from data_generator.errors import DataError
from data_generator.parquet_files import Layout, ParquetFiles, prepare

LAYOUT = Layout(file_rows=300, row_group_rows=100)


def made(folder: Path, rows: int = 1_050) -> ParquetFiles:
    return prepare(resolve("snowset", {}, rows=rows), LAYOUT, folder)


def test_rows_lie_in_their_order_in_files_and_groups_of_the_size_asked_for(tmp_path: Path) -> None:
    files = made(tmp_path)
    footers = [pq.read_metadata(path) for path in files.paths]
    assert [footer.num_rows for footer in footers] == [300, 300, 300, 150]
    groups = [[footer.row_group(place).num_rows for place in range(footer.num_row_groups)] for footer in footers]
    assert groups == [[100] * 3, [100] * 3, [100] * 3, [100, 50]]
    dataset = resolve("snowset", {}, rows=1_050)
    stored = pa.concat_tables([pq.ParquetFile(path).read() for path in files.paths])
    assert stored.equals(pa.Table.from_batches(list(dataset.batches()), dataset.schema))
    assert (files.rows, files.size_bytes) == (1_050, sum(path.stat().st_size for path in files.paths))
    assert footers[0].row_group(0).column(0).compression == "SNAPPY"


def test_they_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = made(tmp_path)
    monkeypatch.setattr(parquet_files, "_written", lambda *_: pytest.fail("made again"))
    assert made(tmp_path) == files


@pytest.mark.parametrize("fault", ["cut", "changed", "missing", "no list"])
def test_what_is_not_whole_is_made_anew(tmp_path: Path, fault: str) -> None:
    files = made(tmp_path)
    path, right = files.paths[1], files.paths[1].read_bytes()
    if fault == "cut":
        path.write_bytes(right[:-1])
    elif fault == "changed":
        path.write_bytes(right[:500] + bytes([right[500] ^ 1]) + right[501:])
    elif fault == "missing":
        path.unlink()
    else:
        (files.folder / "files.json").unlink()
    assert made(tmp_path) == files
    assert path.read_bytes() == right


def test_another_layout_is_another_folder(tmp_path: Path) -> None:
    dataset = resolve("snowset", {}, rows=600)
    layouts = (Layout(300, 100), Layout(300, 150), Layout(600, 100), Layout(300, 100, "zstd"))
    found = [prepare(dataset, layout, tmp_path) for layout in layouts]
    assert len({files.folder for files in found}) == len(layouts)
    assert pq.read_metadata(found[-1].paths[0]).row_group(0).column(0).compression == "ZSTD"


def test_row_groups_that_do_not_fill_a_file_are_refused() -> None:
    with pytest.raises(DataError, match=r"must be a multiple of the rows per row group(.|\n)*6,000 rows per file"):
        Layout(file_rows=1_000, row_group_rows=300)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"The Parquet files of snowset cannot be stored in .*Not a directory"):
        made(tmp_path / "file")
