"""Parquet's settings for single columns: they are stored, read back from the footer, and refused where they do not
apply."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.contract import Can
from adapters.errors import AdapterError, RefusedSetting
from formats.registry import FORMATS

ROWS = 3_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "whole": numbers,
            "real": numbers / 7,
            "text": [f"word {number % 50}" for number in range(ROWS)],
            "nested": [{"x": number, "y": ["a"]} for number in range(ROWS)],
            "moment": pa.array(numbers, pa.timestamp("us")),
            "amount": pa.array([None if number % 9 == 0 else number for number in range(ROWS)], pa.decimal128(9, 2)),
            "kind": pa.array(["one", "two", "two"] * (ROWS // 3)).dictionary_encode(),
            "there": pa.array([True, None, False] * (ROWS // 3)),
            "day": [datetime.date(2024, 1, 1)] * ROWS,
            "dotted.name": numbers % 3,
        }
    )


def stored(variant: str, table: pa.Table, path: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Store the table, check that it comes back, and return the codec and the encodings of each column chunk."""
    adapter = FORMATS.build(variant)
    adapter.load_library()
    assert adapter.refusal(table.schema, table.num_rows) is None
    adapter.save(table, path)
    adapter.stored(path)
    assert adapter.read(path).equals(table)
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return {chunk.path_in_schema: (chunk.compression, chunk.encodings) for chunk in chunks}


@pytest.mark.parametrize(
    ("setting", "encoding"),
    [
        ("plain=0-2+4-5+8-9", "PLAIN"),
        ("split=0-1+4-5+8-9", "BYTE_STREAM_SPLIT"),
        ("delta=0+4+8-9", "DELTA_BINARY_PACKED"),
        ("prefix=2", "DELTA_BYTE_ARRAY"),
        ("lengths=2", "DELTA_LENGTH_BYTE_ARRAY"),
    ],
)
@pytest.mark.rule(10)
def test_columns_have_the_encoding_of_the_setting(setting: str, encoding: str, table: pa.Table, tmp_path: Path) -> None:
    variant = f"parquet[codec=zstd,level=1,{setting}]"
    numbers = (
        {0, 1, 2, 4, 5, 8, 9} if "plain" in setting else {0, 1, 4, 5, 8, 9} if "split" in setting else {0, 4, 8, 9}
    )
    named = {table.schema.names[number] for number in ({2} if "=2" in setting else numbers)}
    for name, (codec, encodings) in stored(variant, table, tmp_path / "t.parquet").items():
        assert codec == "ZSTD"
        if name in named:
            assert encoding in encodings
            assert "RLE_DICTIONARY" not in encodings
        elif name != "there":
            assert "RLE_DICTIONARY" in encodings, name


def test_raw_columns_have_no_codec(table: pa.Table, tmp_path: Path) -> None:
    chunks = stored("parquet[codec=zstd,level=3,raw=1+7,split=1]", table, tmp_path / "t.parquet")
    assert {name for name, (codec, _) in chunks.items() if codec == "UNCOMPRESSED"} == {"real", "there"}
    assert "BYTE_STREAM_SPLIT" in chunks["real"][1]


def test_without_dictionaries_the_other_columns_are_plain(table: pa.Table, tmp_path: Path) -> None:
    chunks = stored("parquet[dictionary=false,delta=0]", table, tmp_path / "t.parquet")
    assert not any("RLE_DICTIONARY" in encodings for _, encodings in chunks.values())
    assert "DELTA_BINARY_PACKED" in chunks["whole"][1]


def test_pages_and_dictionaries_have_the_size_of_the_settings(table: pa.Table, tmp_path: Path) -> None:
    texts = pa.table({"text": [f"{number % 500:0100}" for number in range(ROWS)]})
    stored("parquet[codec=none,dictionary_bytes=1000,page_bytes=1000]", texts, tmp_path / "small.parquet")
    stored("parquet[codec=none]", texts, tmp_path / "usual.parquet")
    small, usual = (
        pq.read_metadata(tmp_path / f"{name}.parquet").row_group(0).column(0) for name in ("small", "usual")
    )
    assert "PLAIN" in small.encodings
    assert small.total_compressed_size > usual.total_compressed_size
    stored("parquet[codec=none,page_version=2.0]", table, tmp_path / "v2.parquet")


def test_a_stream_is_stored_with_the_settings(table: pa.Table, tmp_path: Path) -> None:
    adapter = FORMATS.build("parquet[codec=zstd,raw=1,delta=0,prefix=2]")
    adapter.load_library()
    adapter.save_stream(table.schema, iter(table.to_batches(max_chunksize=500)), tmp_path / "t.parquet")
    adapter.stored(tmp_path / "t.parquet")
    assert adapter.read(tmp_path / "t.parquet").equals(table)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("split=2", "split does not apply to column 2 ('text', string)"),
        ("delta=1", "delta does not apply to column 1 ('real', double)"),
        ("prefix=0", "prefix does not apply to column 0 ('whole', int64)"),
        ("plain=6", "plain does not apply to column 6 ('kind', dictionary"),
        ("split=7", "split does not apply to column 7 ('there', bool)"),
        ("raw=3", "raw does not apply to column 3 ('nested', struct"),
        ("order=3", "order does not apply to column 3 ('nested', struct"),
        ("raw=10", "raw names column 10, but the table has 10 columns, counted from 0"),
        ("split=0,delta=0", "the settings name two encodings for column 0"),
    ],
)
def test_a_setting_that_does_not_apply_is_refused_before_saving(setting: str, reason: str, table: pa.Table) -> None:
    assert (FORMATS.build(f"parquet[{setting}]").refusal(table.schema, ROWS) or "").startswith(reason)


@pytest.mark.parametrize("text", ["x", "1+", "3-1"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(RefusedSetting, match="numbers of columns from 0"):
        FORMATS.build(f"parquet[split={text}]")


@pytest.mark.rule(10)
def test_a_file_with_other_encodings_or_codecs_is_found(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="zstd")
    for setting, said in (
        ("split=1", "the file's variant sets split=1"),
        ("raw=1", "is compressed; the file's variant sets no codec"),
    ):
        adapter = FORMATS.build(f"parquet[codec=zstd,{setting}]")
        adapter.load_library()
        with pytest.raises(AdapterError, match=said):
            adapter.stored(path)


def test_rows_are_sorted_and_offer_no_reads_by_place(table: pa.Table, tmp_path: Path) -> None:
    adapter = FORMATS.build("parquet[order=2]")
    adapter.load_library()
    adapter.save(table, tmp_path / "t.parquet")
    assert adapter.read(tmp_path / "t.parquet")["text"].to_pylist() == sorted(table["text"].to_pylist())
    assert adapter.offers.take is None
    assert not adapter.offers.scan
    assert not adapter.offers.save_stream


def test_a_table_in_files_comes_back_in_order(table: pa.Table, tmp_path: Path) -> None:
    adapter = FORMATS.build("parquet[codec=zstd,level=1,files=7,delta=0]")
    adapter.load_library()
    adapter.save(table, tmp_path / "t.parquet")
    assert len(list((tmp_path / "t.parquet").iterdir())) == 7
    assert Can.SINGLE_FILE not in adapter.capabilities
    assert Can.SINGLE_FILE in FORMATS.build("parquet").capabilities
    assert adapter.read(tmp_path / "t.parquet").equals(table)
    assert adapter.stored(tmp_path / "t.parquet").codec == "zstd"
    handle = adapter.open(tmp_path / "t.parquet")
    assert handle.project is not None
    assert handle.project(["text", "whole"]).equals(table.select(["text", "whole"]))
    handle.close()
    (tmp_path / "t.parquet" / "part-00003.parquet").unlink()
    with pytest.raises(AdapterError, match="has 6 files, but must have 7"):
        adapter.stored(tmp_path / "t.parquet")
    few = FORMATS.build("parquet[files=4000]")
    few.load_library()
    few.save(table.slice(0, 3), tmp_path / "few.parquet")
    few.stored(tmp_path / "few.parquet")
    assert len(list((tmp_path / "few.parquet").iterdir())) == 3
    few.save(table.slice(0, 0), tmp_path / "none.parquet")
    assert few.read(tmp_path / "none.parquet").num_rows == 0
