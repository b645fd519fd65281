"""Every kind of file gives the same table and the same sample; a broken file of each kind gives a clear error."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_generator.imported.tables import table_types
from tests.data_generator.imported import packed
from tests.data_generator.imported.tables.table_files import KINDS, numbered, refusal, take, write

pytest.importorskip("fastavro")
pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")

ROWS = 1_000


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(numbered(ROWS), tmp_path / f"table.{request.param}")


def sampled_places(rows: int) -> list[int]:
    from data_generator.imported.tables.sampling import blocks

    return [row for block in blocks(ROWS, rows) for row in range(block.start, block.end)]


def test_a_table_that_fits_is_taken_as_it_is(path: Path) -> None:
    taken = take(path)
    assert taken.table.equals(numbered(ROWS))
    assert (taken.facts["input_rows"], taken.facts["rows"], taken.facts["blocks"]) == (ROWS, ROWS, 1)
    assert taken.remarks == []
    assert taken.table.schema.metadata is None


def test_a_larger_one_is_sampled_in_blocks(path: Path) -> None:
    taken = take(path, 100)
    assert taken.table["place"].to_pylist() == sampled_places(100)
    assert taken.table.equals(numbered(ROWS).take(sampled_places(100)))
    assert (taken.facts["input_rows"], taken.facts["rows"], taken.facts["blocks"]) == (ROWS, 100, 16)


def test_one_row_is_a_sample(path: Path) -> None:
    assert take(path, 1).table["place"].to_pylist() == [0]


def test_missing_values_stay_missing(path: Path) -> None:
    """One missing value per column; Excel and text can store it only as an empty cell."""
    table = numbered(60)
    columns = [pa.array([None, *column.to_pylist()[1:]], column.type) for column in table.columns]
    gaps = pa.table(columns, names=table.column_names)
    assert take(write(gaps, path)).table.equals(gaps)


def test_a_file_without_rows_is_refused(path: Path) -> None:
    if path.name.endswith((".json", ".jsonl")):
        path.write_text("\n\n")
    else:
        write(numbered(ROWS).slice(0, 0), path)
    assert re.search("has no (rows|sheet with rows)", refusal(path))


def test_too_many_columns_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 2)
    assert refusal(path).startswith(f"{path}: has 3 columns, more than the limit of 2\n  Leave columns out")


def test_as_many_columns_as_are_allowed_are_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 3)
    assert take(path).table.num_columns == 3


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.orc", "a.jsonl"])
def test_fields_of_structs_count_as_columns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 3)
    inside = write(pa.table({"a": [[{"x": 1, "y": 2}]], "b": [{"x": 1, "y": 2}]}), tmp_path / name)
    assert "has 4 columns, more than the limit of 3" in refusal(inside)


def test_a_file_that_is_cut_short_is_refused(path: Path) -> None:
    content = path.read_bytes()
    is_text = path.suffix in (".csv", ".tsv", ".json", ".jsonl")
    path.write_bytes(content[: content.index(b"word 5", len(content) // 2) - 2] if is_text else content[:-90])
    assert f"{path}" in refusal(path)


def test_noise_is_refused(path: Path) -> None:
    path.write_bytes(bytes(number * 7 % 256 for number in range(1, 20_000)))
    assert f"{path}" in refusal(path)


@pytest.mark.parametrize(("content", "name"), [("parquet", "csv"), ("feather", "parquet"), ("avro", "jsonl")])
def test_a_wrong_name_is_reported(content: str, name: str, tmp_path: Path) -> None:
    right = write(numbered(10), tmp_path / f"table.{content}")
    wrong = right.rename(tmp_path / f"other.{name}")
    assert "by its content, but" in refusal(wrong)


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl"])
@pytest.mark.parametrize("ending", packed.ENDINGS)
def test_a_packed_file_whose_name_does_not_say_so_is_refused(ending: str, name: str, tmp_path: Path) -> None:
    path = packed.write(b'{"a": 1}\n', tmp_path / f"{name}{ending}").rename(tmp_path / name)
    assert f"its name does not end with {ending}\n  Append {ending}" in refusal(path)


def test_what_pandas_has_written_into_a_schema_decides_nothing(tmp_path: Path) -> None:
    """Its index would otherwise come back in some formats only."""
    frame = numbered(10).to_pandas().set_index("word")
    frame.to_parquet(tmp_path / "a.parquet")
    taken = take(tmp_path / "a.parquet")
    assert taken.table.column_names == ["place", "share", "word"]
    assert taken.table.schema.metadata is None


def test_large_values_leave_in_small_batches(tmp_path: Path) -> None:
    from data_generator.imported.tables import table_import
    from tests.data_generator.imported.tables.table_files import frames

    pq.write_table(pa.table({"text": ["x" * (1 << 20)] * 80}), tmp_path / "a.parquet")
    sizes = [len(content) for kind, content in frames(tmp_path / "a.parquet", 100) if kind == table_import.BATCH]
    assert len(sizes) > 1
    assert max(sizes) < 40 << 20
