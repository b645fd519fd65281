"""Excel: the first sheet, its first row the names, a type for each column of cells."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tests.data_generator.imported.tables.table_files import refusal, take

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")


def sheet(path: Path, *rows: tuple[object, ...]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("second").append(("not", "this"))
    book.save(path / "table.xlsx")
    return path / "table.xlsx"


NOON, LATER = datetime.datetime(2024, 1, 2, 12, 30), datetime.datetime(2024, 1, 3)

COLUMNS = [
    ((1, 2, None), pa.int64()),
    ((1, 2.5, None), pa.float64()),
    ((True, False, None), pa.bool_()),
    (("x", "2", None), pa.string()),
    ((NOON, LATER, None), pa.timestamp("us")),
    ((datetime.date(2024, 1, 2), datetime.date(2024, 1, 3), None), pa.date32()),
    ((datetime.time(1, 2, 3), None, None), pa.time64("us")),
]


@pytest.mark.parametrize(("cells", "kind"), COLUMNS, ids=[str(kind) for _, kind in COLUMNS])
def test_a_column_has_the_type_of_its_cells(cells: tuple[object, ...], kind: pa.DataType, tmp_path: Path) -> None:
    path = sheet(tmp_path, ("a", "b"), *((cell, 0) for cell in cells))
    made = take(path).table["a"]
    assert made.type == kind
    assert made.to_pylist() == list(cells)


def test_names_are_those_of_the_first_row(tmp_path: Path) -> None:
    path = sheet(tmp_path, (None, "a", 2024), (1, 2, 3))
    assert take(path).table.column_names == ["Unnamed: 0", "a", "2024"]
    assert "column 2 has the name 'a', as column 1 has" in refusal(sheet(tmp_path, ("a", "a"), (1, 2)))


def test_mixed_cells_are_text_and_the_row_is_told(tmp_path: Path) -> None:
    taken = take(sheet(tmp_path, ("a",), (1,), (2,), ("three",), (NOON,)))
    assert taken.table["a"].to_pylist() == ["1", "2", "three", "2024-01-02 12:30:00"]
    (remark,) = taken.remarks
    assert "column 'a' is mixed and stays text: row 4 holds 'three', which is no number\n" in remark


def test_empty_rows_at_the_end_are_no_rows(tmp_path: Path) -> None:
    path = sheet(tmp_path, ("a", "b"), (1, 2), (3, None))
    book = openpyxl.load_workbook(path)
    book.active["D9"] = ""
    book.save(path)
    rows = pd.read_excel(path, engine="openpyxl")[["a", "b"]].replace({float("nan"): None})
    assert take(path).table.to_pylist() == rows.to_dict("records")


def test_an_empty_sheet_is_refused(tmp_path: Path) -> None:
    assert "holds no rows in its first sheet" in refusal(sheet(tmp_path))
    assert "holds no rows" in refusal(sheet(tmp_path, ("a", "b")))


def test_a_zip_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("hello.txt", "world")
    assert "cannot be read" in refusal(tmp_path / "a.xlsx")
