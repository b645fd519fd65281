"""Names alone determine where a table is; other paths give a clear error."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from data_generator.errors import DataError
from data_generator.imported import byte_stream
from data_generator.imported.byte_stream import PACKED
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.tables import table_input, table_worker
from data_generator.imported.tables.own_table import MOST_ROWS
from data_generator.imported.tables.sampling import BLOCKS
from data_generator.imported.tables.table_input import CSV, JSON, PARQUET, SUFFIXES, find

PAGE = (Path(__file__).parents[4] / "docs/data.md").read_text()


def refused(path: Path, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        find(path)
    assert str(caught.value).count("\n") <= 1
    assert str(caught.value).replace("\n", "").isprintable()


def filled(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_suffix_says_what_a_file_holds(suffix: str, tmp_path: Path) -> None:
    found = find(filled(tmp_path / f"My Table.2024{suffix.upper()}"))
    assert found.kind == SUFFIXES[suffix]
    assert [file.name for file in found.files] == [found.path.name]


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_text_may_be_compressed_and_other_files_are_refused_with_what_unpacks_them(
    ending: str, suffix: str, tmp_path: Path
) -> None:
    path = filled(tmp_path / f"My Table{suffix}{ending.upper()}")
    if SUFFIXES[suffix] in (CSV, JSON):
        assert find(path).kind == SUFFIXES[suffix]
    else:
        refused(
            path,
            rf"is compressed\. {SUFFIXES[suffix]} files must be unpacked first\.\s+Run: {PACKED[ending]} 'My Table",
        )


def test_a_compressed_file_of_any_name_and_in_a_folder_is_refused(tmp_path: Path) -> None:
    refused(
        filled(tmp_path / "a.zip"),
        r"its name does not show the kind of its content\.\s+Rename it to end with .csv.zip or .jsonl.zip .* unzip a",
    )
    refused(filled(tmp_path / "data.txt.gz"), "its name does not show the kind of its content")
    filled(tmp_path / "parts/a.parquet")
    filled(tmp_path / "parts/b.parquet.gz")
    refused(tmp_path / "parts", r"b.parquet.gz is compressed\. Parquet files must be unpacked")


def test_the_page_names_every_suffix_and_number() -> None:
    assert set(re.findall(r"`(\.[a-z0-9.]+)`", PAGE)) >= {*SUFFIXES, *PACKED}
    said = " ".join(PAGE.split())
    assert f"{MOST_ROWS:,} rows" in said
    assert f"{BLOCKS} blocks" in said
    assert f"{MOST_ROWS // BLOCKS:,} rows" in said
    assert f"{table_worker.MEMORY_BYTES >> 30} GiB" in said
    assert f"after {table_worker.STALL_S:g} s" in said
    assert f"more than {byte_stream.BLOCK_BYTES >> 20} MB" in said


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    filled(tmp_path / "real.csv")
    (tmp_path / "link.txt").symlink_to("real.csv")
    assert find(tmp_path / "link.txt").path == tmp_path / "real.csv"


def test_a_folder_is_its_parquet_files_in_order(tmp_path: Path) -> None:
    passed_over = ("_metadata.parquet", ".hidden.parquet", "_notes.csv", "notes.txt", "about.json")
    for name in ("b.parquet", "c.PARQUET", "a.parquet", "d.pq", *passed_over):
        filled(tmp_path / "data" / name)
    for path in (tmp_path, tmp_path / "data"):
        found = find(path)
        assert found.kind == PARQUET
        assert [Path(file.name).name for file in found.files] == ["a.parquet", "b.parquet", "c.PARQUET", "d.pq"]


def test_other_tables_in_a_folder_are_not_skipped(tmp_path: Path) -> None:
    for name in ("a.parquet", "year=1/b.parquet", "year=1/c.csv.gz"):
        filled(tmp_path / name)
    refused(tmp_path, r"has Parquet files and tables of other kinds: year=1/c.csv.gz\.\s+Name one of these")


def test_files_in_several_folders_may_be_several_tables(tmp_path: Path) -> None:
    filled(tmp_path / "test/a.parquet")
    filled(tmp_path / "train/a.parquet")
    refused(tmp_path, r"has Parquet files in several folders: test, train\.\s+Name one of these")


def test_what_tells_an_input_from_others_changes_with_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.csv")
    before = find(path).about()
    assert before["kind"] == CSV
    os.utime(path, ns=(1, 1))
    touched = find(path).about()
    path.write_bytes(b"xy")
    os.utime(path, ns=(1, 1))
    assert len({before["fingerprint"], touched["fingerprint"], find(path).about()["fingerprint"]}) == 3


def test_inputs_other_than_files_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none.csv", "No such file or directory")
    refused(Path("/dev/zero"), "is neither a file nor a folder")
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "is neither a file nor a folder")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    refused(tmp_path / "loop.csv", "symbolic links")
    refused(tmp_path / "nul\0.csv", "null")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    refused(tmp_path / "a.csv", r"a\.csv is empty \(0 bytes\)")


def test_a_name_that_says_nothing_is_refused(tmp_path: Path) -> None:
    refused(
        filled(tmp_path / "table.bin"), r"does not end with a suffix of a supported kind\.\s+A table is read from CSV"
    )
    refused(filled(tmp_path / "\x1b[31m.bin"), r"\\x1b\[31m\.bin does not end with")


def test_images_say_where_they_go(tmp_path: Path) -> None:
    refused(filled(tmp_path / "one.png"), r"is an image.*\s+For images, use the suite image")
    filled(tmp_path / "cats/one.png")
    refused(tmp_path, r"has no Parquet files.*\s+.*For images, use the suite image")


def test_a_folder_without_parquet_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a.csv")
    refused(tmp_path, r"has no Parquet files.*\s+A table is read from")


@pytest.mark.parametrize(
    ("mark", "data", "said"),
    [
        ("_delta_log/0.json", "a.parquet", r"is a Delta table.*\n  .*delta_scan"),
        ("_delta_log/0.json", "year=2024/a.parquet", "is a Delta table"),
        (".hoodie/hoodie.properties", "eu/a.parquet", r"is a Hudi table.*\n  .*format\('hudi'\)"),
        ("metadata/v1.metadata.json", "data/a.parquet", r"is an Iceberg table.*\n  .*iceberg_scan"),
    ],
)
def test_a_table_that_is_more_than_its_files_is_refused(mark: str, data: str, said: str, tmp_path: Path) -> None:
    filled(tmp_path / "lake/table" / mark)
    file = filled(tmp_path / "lake/table" / data)
    for path in (tmp_path / "lake", tmp_path / "lake/table", file.parent):
        refused(path, f"{tmp_path}/lake/table {said}")
    assert find(file).kind == PARQUET


def test_folders_with_values_in_their_names_are_one_table(tmp_path: Path) -> None:
    names = [f"data/year=2024/month={month}/day=1/hour=2/minute=3/a.parquet" for month in (1, 2)]
    for name in names:
        filled(tmp_path / name)
    assert [file.name for file in find(tmp_path).files] == names
    filled(tmp_path / "data/year=2024/a.parquet")
    refused(tmp_path, r"in several folders: data/year=\.\., data/year=\.\./month=\.\./")


def test_links_that_lead_out_of_a_folder_are_refused(tmp_path: Path) -> None:
    filled(tmp_path / "out.parquet")
    filled(tmp_path / "in/a.parquet")
    (tmp_path / "in/b.parquet").symlink_to("../out.parquet")
    refused(tmp_path / "in", "is a link to a place outside of")
    (tmp_path / "in/b.parquet").unlink()
    (tmp_path / "in/c").symlink_to(tmp_path)
    refused(tmp_path / "in", "is a link to a folder")


def test_the_suffixes_are_those_that_are_taken() -> None:
    assert all(suffix == suffix.lower() for suffix in SUFFIXES)
    assert table_input.TAKEN.count("\n") == 0


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("t.parquet", {"delimiter": ";"}, "is Parquet, but delimiter=';' applies to CSV only"),
        ("t.xlsx", {"day_first": True}, "is Excel, but day_first=True applies to CSV only"),
        ("t.csv", {"sheet": "2"}, "is CSV, but sheet='2' applies to Excel only"),
        ("t.jsonl", {"header": False}, "is JSON Lines, but header=False applies to CSV, Excel only"),
        ("t.avro", {"columns": {"a": "text"}}, "is Avro, but columns={'a': 'text'} applies to CSV, JSON Lines, Excel"),
    ],
)
def test_an_option_that_a_file_has_no_use_for_is_refused(
    name: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    with pytest.raises(DataError, match=re.escape(said)):
        table_input.check_options(table_input.find(path), ReadOptions(**options))


def test_options_that_a_file_has_a_use_for_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x")
    table_input.check_options(table_input.find(path), ReadOptions(delimiter=";", decimal=",", columns={"a": "text"}))
