"""The baseline follows from the file's name, and uses the library's default call."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from pandas.io.excel._util import get_default_engine

from bench_runner.data_kinds import IMAGES, TABLES
from bench_runner.registries import engine_of
from data_generator.imported.tables.table_input import SUFFIXES
from format_bench.api.own_format import CODECS, OF_IMAGES, OF_TABLES, PLAIN_CSV, plain_call


def found(folder: Path, *names: str, images: bool = False) -> str | None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(b"x")
    return plain_call(folder / names[0] if len(names) == 1 and not images else folder, IMAGES if images else TABLES)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("sales.csv", PLAIN_CSV),
        ("sales.tsv", PLAIN_CSV),
        ("sales.csv.gz", "csv[engine=pandas,codec=gzip]"),
        ("sales.jsonl.zst", "json[engine=pandas,codec=zstd]"),
        ("sales.csv.zip", PLAIN_CSV),
        ("sales.jsonl", "json[engine=pandas]"),
        ("sales.parquet", "parquet[engine=pandas,codec=snappy]"),
        ("sales.feather", "feather[engine=pandas,codec=lz4]"),
        ("sales.xlsx", "excel[save=xlsxwriter,read=openpyxl]"),
    ],
)
def test_a_file_of_each_kind_has_a_plain_call(name: str, variant: str, tmp_path: Path) -> None:
    assert found(tmp_path, name) == variant


def test_a_folder_of_parquet_files_is_parquet(tmp_path: Path) -> None:
    assert found(tmp_path, "a.parquet", "b.parquet") == OF_TABLES["Parquet"]


def test_every_kind_that_is_taken_has_one_and_each_is_spelled_as_it_is_measured() -> None:
    assert set(OF_TABLES) == set(SUFFIXES.values())
    packed = [f"{plain}[engine=pandas,codec={codec}]" for plain in ("csv", "json") for codec in CODECS.values()]
    for variant in (*OF_TABLES.values(), *OF_IMAGES.values(), *packed):
        engine, settings = engine_of(variant)
        assert engine(settings).variant == variant


def test_the_calls_are_the_libraries_defaults() -> None:
    for variant in (*OF_TABLES.values(), *OF_IMAGES.values()):
        engine, settings = engine_of(variant)
        usual = engine(engine.library_default).values
        # Excel's writer is whichever of two is installed.
        assert engine.format == "excel" or engine(settings).values == usual, variant
    engine, settings = engine_of(OF_TABLES["Excel"])
    excel = engine(settings).values
    assert (excel["save"], excel["read"]) == tuple(get_default_engine("xlsx", mode) for mode in ("writer", "reader"))
    frame = pd.DataFrame({"a": [1]})
    assert frame.to_json(orient="records") == frame.to_json(orient="records", double_precision=10)


def test_images_of_one_format_are_that_and_of_several_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "one", "a/1.png", "b/2.PNG", images=True) == "png[engine=pillow]"
    assert found(tmp_path / "two", "1.jpg", "2.jpeg", images=True) == "jpeg[engine=pillow]"
    assert found(tmp_path / "mixed", "1.jpg", "2.png", images=True) is None
    assert found(tmp_path / "other", "1.bmp", "2.bmp", images=True) is None


def test_invalid_files_are_left_to_the_plan(tmp_path: Path) -> None:
    assert plain_call(tmp_path / "nothing.csv", TABLES) is None
    assert found(tmp_path, "table.unknown") is None
