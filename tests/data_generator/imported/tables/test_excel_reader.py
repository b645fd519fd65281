"""Excel: one type per column of cells, the sheet that is read, and unusual cells."""

from __future__ import annotations

import datetime
import io
import math
import struct
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import xlsxwriter

from tests.data_generator.imported.tables.table_files import refusal, take

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")

TABLE = [("a", "b"), (1, "x"), (2, "y")]
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def book(path: Path, sheets: dict[str, Any], hidden: tuple[str, ...] = (), epoch: Any = None) -> Path:
    """Return a workbook with these rows in its sheets; None is a sheet with a chart."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    made.epoch = epoch or made.epoch
    for name, rows in sheets.items():
        if rows is None:
            made.create_chartsheet(name).add_chart(openpyxl.chart.BarChart())
            continue
        made.create_sheet(name)
        for row in rows:
            made[name].append(row)
        made[name].sheet_state = "hidden" if name in hidden else "visible"
    made.save(path / "table.xlsx")
    return path / "table.xlsx"


def sheet(path: Path, *rows: tuple[object, ...]) -> Path:
    return book(path, {"Sheet": rows})


NOON, LATER = datetime.datetime(2024, 1, 2, 12, 30), datetime.datetime(2024, 1, 3)
DAY, LAST = datetime.date(2024, 1, 2), datetime.date(9999, 12, 31)

COLUMNS = [
    ((1, 2, None), pa.int64()),
    ((1, 2.5, None), pa.float64()),
    ((2**53 - 1, -5, 0), pa.int64()),
    ((0.1, 1e22, 1e-300), pa.float64()),
    ((True, False, None), pa.bool_()),
    (("x", "2", None), pa.string()),
    (("00123", " x ", "1e5"), pa.string()),
    (("12345678901234567890", "2024-01-02", "5 %"), pa.string()),
    ((NOON, LATER, None), pa.timestamp("us")),
    ((NOON.replace(microsecond=123_000), None, datetime.datetime(9999, 12, 31, 23, 59, 59)), pa.timestamp("us")),
    ((DAY, datetime.date(2024, 1, 3), None), pa.date32()),
    ((LAST, datetime.date(1900, 3, 1), None), pa.date32()),
    ((datetime.time(1, 2, 3), None, datetime.time(23, 59, 59, 500_000)), pa.time64("us")),
    ((datetime.timedelta(hours=30), datetime.timedelta(days=2), None), pa.duration("us")),
]


@pytest.mark.parametrize(("cells", "kind"), COLUMNS, ids=[f"{kind} {cells[0]}" for cells, kind in COLUMNS])
def test_a_column_has_the_type_of_its_cells(cells: tuple[object, ...], kind: pa.DataType, tmp_path: Path) -> None:
    taken = take(sheet(tmp_path, ("a", "b"), *((cell, 0) for cell in cells)))
    assert taken.table["a"].type == kind
    assert taken.table["a"].to_pylist() == list(cells)
    assert taken.remarks == []
    empty = cells.count(None)
    assert taken.understood == {
        "sheet": "'Sheet' (1 of 1)",
        "header": "row 1",
        "missing values": f"{empty} empty" if empty else "none",
    }


def test_dates_of_the_1904_system_are_those_that_excel_shows(tmp_path: Path) -> None:
    path = book(tmp_path, {"S": [("a",), (NOON,), (LATER,)]}, epoch=openpyxl.utils.datetime.CALENDAR_MAC_1904)
    assert take(path).table["a"].to_pylist() == [NOON, LATER]


@pytest.mark.parametrize("engine", ["openpyxl", "xlsxwriter"])
def test_a_table_that_pandas_writes_comes_back(engine: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"i": [1, 2], "f": [0.1, None], "t": [NOON, LATER], "s": ["00123", "é"], "b": [True, False]})
    frame.to_excel(tmp_path / "table.xlsx", index=False, engine=engine)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert take(tmp_path / "table.xlsx").table.to_pylist() == rows
    frame.to_excel(tmp_path / "table.xlsx", engine=engine)
    taken = take(tmp_path / "table.xlsx")
    assert taken.table.column_names[:2] == ["Unnamed: 0", "i"]
    assert "row 1 is used as the column names and has none for 1 of 6 (cell B1: 'i')" in taken.remarks[0]


def test_percent_and_currency_are_their_numbers(tmp_path: Path) -> None:
    path = sheet(tmp_path, ("share", "price"), (0.25, 9.5), (1.5, 2))
    made = openpyxl.load_workbook(path)
    for row in ("2", "3"):
        made.active[f"A{row}"].number_format, made.active[f"B{row}"].number_format = "0%", "[$€-407]#,##0.00"
    made.save(path)
    assert take(path).table.to_pydict() == {"share": [0.25, 1.5], "price": [9.5, 2.0]}


def test_names_are_those_of_the_first_row(tmp_path: Path) -> None:
    path = sheet(tmp_path, (None, "a", 2024), (1, 2, 3))
    assert take(path).table.column_names == ["Unnamed: 0", "a", "2024"]
    assert "columns 1 and 2 have the same name 'a'" in refusal(sheet(tmp_path, ("a", "a"), (1, 2)))
    taken = take(sheet(tmp_path, (" a", "A", "a"), (1, 2, 3)))
    assert taken.table.column_names == [" a", "A", "a"]
    assert len(taken.remarks) == 2


MIXED = [
    ((1, 2, "three", NOON), ["1", "2", "three", "2024-01-02 12:30:00"], "number (2), text (1), date (1) (cell A4: 'th"),
    ((True, 1.5), ["True", "1.5"], "boolean (1), number (1) (cell A3: '1.5')"),
    ((DAY, None, "soon"), ["2024-01-02", None, "soon"], "date (1), text (1) (cell A4: 'soon')"),
    ((datetime.time(1, 2), 5), ["01:02:00", "5"], "time (1), number (1) (cell A3: '5')"),
]


@pytest.mark.parametrize(("cells", "expected", "said"), MIXED)
def test_mixed_cells_are_text_and_the_first_is_named(
    cells: tuple[Any, ...], expected: list[Any], said: str, tmp_path: Path
) -> None:
    taken = take(sheet(tmp_path, ("a",), *((cell,) for cell in cells)))
    assert taken.table["a"].to_pylist() == expected
    (remark,) = (remark for remark in taken.remarks if "mixed" in remark)
    assert f"column 'a': mixed, stays text: {said}" in remark


def test_words_for_missing_values_are_missing_and_named(tmp_path: Path) -> None:
    taken = take(sheet(tmp_path, ("a", "n"), ("NA", 1), ("x", "n/a"), ("NA", None)))
    assert taken.table.to_pydict() == {"a": [None, "x", None], "n": [1, None, None]}
    assert taken.understood["missing values"] == "2 'NA', 1 'n/a', 1 empty"
    (remark,) = taken.remarks
    assert "column 'a': text; a word for missing in 2 cells (cell A2: 'NA')\n--column a=text keeps" in remark
    assert taken.facts["changed"] == ["a"]
    assert take(tmp_path / "table.xlsx", columns={"a": "text"}).table["a"].to_pylist() == ["NA", "x", "NA"]


def test_words_for_missing_values_alone_are_named(tmp_path: Path) -> None:
    taken = take(sheet(tmp_path, ("a", "n"), ("NA", 1), ("n/a", 2)))
    assert taken.table["a"].to_pylist() == [None, None]
    assert "column 'a': no values; a word for missing in 2 cells (cell A2: 'NA')" in taken.remarks[0]
    assert taken.facts["changed"] == ["a"]


SHEETS = [
    ({"Chart": None, "Data": TABLE}, (), {}, "'Data' (2 of 2)", ""),
    ({"Empty": [], "Title": [("only",)], "Data": TABLE}, (), {}, "'Data' (3 of 3)", ""),
    ({"Data": TABLE, "More": TABLE, "Title": [("only",)]}, (), {}, "'Data' (1 of 3)", "other sheets with rows: 'More'"),
    ({"Lists": TABLE, "Data": TABLE}, ("Lists",), {}, "'Data' (2 of 2)", "other sheets with rows: 'Lists'"),
    ({"A": [("x",), (0,)], "Data": TABLE}, (), {"sheet": "Data"}, "'Data' (2 of 2)", ""),
    ({"A": [("x",), (0,)], "Data": TABLE}, (), {"sheet": "2"}, "'Data' (2 of 2)", ""),
    ({"2": TABLE, "A": [("x",), (0,)]}, (), {"sheet": "2"}, "'2' (1 of 2)", ""),
    ({"A": [("x",), (0,)], "Data": TABLE}, ("Data",), {"sheet": "Data"}, "'Data' (2 of 2)", ""),
]


@pytest.mark.parametrize(("sheets", "hidden", "options", "shown", "said"), SHEETS)
def test_the_sheet_is_the_first_visible_one_with_rows_or_the_named_one(
    sheets: dict[str, Any], hidden: tuple[str, ...], options: dict[str, Any], shown: str, said: str, tmp_path: Path
) -> None:
    taken = take(book(tmp_path, sheets, hidden), **options)
    assert (taken.table.to_pylist(), taken.understood["sheet"]) == (ROWS, shown)
    assert len(taken.remarks) == bool(said)
    assert said in "".join(taken.remarks)


@pytest.mark.parametrize(
    ("sheets", "wanted", "said"),
    [
        ({"A": TABLE, "B": TABLE}, "C", "has no sheet 'C', the value of `sheet`\n  Its sheets are 'A', 'B'"),
        ({"A": TABLE}, "2", "has no sheet '2'"),
        ({"A": TABLE}, "0", "has no sheet '0'"),
        ({"C": None, "A": TABLE}, "C", "is not a work sheet, but a chart or macros\n  Set `sheet` to one of 'A'"),
        ({"A": TABLE, "E": []}, "E", "sheet 'E' has no rows"),
        ({"A": [], "B": [("a", "b")]}, None, "has no sheet with rows below the header (sheets: 'A', 'B')"),
    ],
)
def test_a_sheet_without_a_table_is_refused(
    sheets: dict[str, Any], wanted: str | None, said: str, tmp_path: Path
) -> None:
    assert said in refusal(book(tmp_path, sheets), sheet=wanted)


def test_without_a_header_the_first_row_is_one(tmp_path: Path) -> None:
    path = sheet(tmp_path, (1, "x"), (2, "y"))
    assert take(path, header=False).table.to_pydict() == {"0": [1, 2], "1": ["x", "y"]}
    path = sheet(tmp_path, (1, 5), (2, 6))
    assert "row 1 is used as the column names, but has values" in take(path).remarks[0]
    assert take(path, header=False).remarks == []


def test_what_is_empty_around_a_table_is_left_out_and_rows_amid_it_are_kept(tmp_path: Path) -> None:
    path = sheet(tmp_path, (), (), (None, None, "a", "b"), (None, None, 1, 2), (), (None, None, 3, None))
    made = openpyxl.load_workbook(path)
    made.active["H19"] = ""
    made.save(path)
    taken = take(path)
    assert taken.table.to_pydict() == {"a": [1, None, 3], "b": [2, None, None]}
    assert taken.understood["header"] == "row 3"
    (remark,) = taken.remarks
    assert remark.startswith("1 empty rows are rows without values (the first: row 5)")


def test_a_title_above_the_header_and_merged_cells_are_reported(tmp_path: Path) -> None:
    path = sheet(tmp_path, ("Report", None), ("a", "b"), (1, 2), (None, 3))
    made = openpyxl.load_workbook(path)
    made.active.merge_cells("A1:B1")
    made.active.merge_cells("A3:A4")
    made.save(path)
    title, merged, *_ = take(path).remarks
    assert "row 1 is used as the column names and has none for 1 of 2 (cell A1: 'Report')" in title
    assert "1 ranges of merged cells: only the first cell of each has the value (the first: row 3)" in merged


NAMED = [
    (("00123", 5), "int64", [123, 5]),
    ((1, 2), "float64", [1.0, 2.0]),
    ((1.5, "x", NOON), "text", ["1.5", "x", "2024-01-02 12:30:00"]),
    ((DAY, NOON), "timestamp", [datetime.datetime(2024, 1, 2), NOON]),
    (("yes", False), "boolean", [True, False]),
]


@pytest.mark.parametrize(("cells", "kind", "values"), NAMED)
def test_a_column_has_the_type_that_is_named(
    cells: tuple[Any, ...], kind: str, values: list[Any], tmp_path: Path
) -> None:
    taken = take(sheet(tmp_path, ("a",), *((cell,) for cell in cells)), columns={"a": kind})
    assert taken.table["a"].to_pylist() == values
    assert taken.remarks == []


def test_a_type_that_does_not_hold_a_value_is_refused_with_its_cell(tmp_path: Path) -> None:
    path = sheet(tmp_path, (None, "a"), (None, 1), (None, "x"))
    assert "cell B3: column 'a' holds 'x', which does not fit `columns={'a': 'int64'}`" in refusal(
        path, columns={"a": "int64"}
    )
    assert "has no column 'b', which is given in `columns`" in refusal(path, columns={"b": "int64"})


def written(path: Path, cells: str, to_compute: bool = False) -> Path:
    """Return a workbook with this XML for the cells below the header."""
    base = sheet(path, ("a", "b"), (1, 2), (3, 4))
    content = io.BytesIO()
    with zipfile.ZipFile(base) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            part = old.read(name).decode()
            if name == "xl/workbook.xml" and not to_compute:
                part = part.replace('fullCalcOnLoad="1"', "")
            if name == "xl/worksheets/sheet1.xml":
                begin, end = part.index('<row r="2"'), part.index("</sheetData>")
                part = part[:begin] + cells + part[end:]
            new.writestr(name, part)
    base.write_bytes(content.getvalue())
    return base


ODD = [
    ('<c r="A2"><f>1+1</f><v></v></c>', None, "formulas without a stored value in 1 cells are missing values"),
    ('<c r="A2"><f>1+1</f></c>', None, "formulas without a stored value in 1 cells"),
    ('<c r="A2"><f t="shared" si="0"/><v/></c>', None, "formulas without a stored value in 1 cells"),
    ("<c><f>1+1</f><v/></c>", None, "formulas without a stored value in 1 cells"),
    (
        '<c r="A2" t="e"><f>1/0</f><v>#DIV/0!</v></c>',
        None,
        "errors in 1 cells are missing values (the first: cell A2: '#D",
    ),
    ('<c r="A2" t="e"><v>#N/A</v></c>', None, "errors in 1 cells are missing values"),
    (
        '<c r="A2"><v>9007199254740993</v></c>',
        9007199254740992.0,
        "integers with more digits than a cell holds in 1 cells",
    ),
    ('<c r="A2"><v>1e309</v></c>', math.inf, "numbers beyond the range of a cell in 1 cells are infinite"),
    (f'<c r="A2"><v>-{"9" * 320}</v></c>', -math.inf, "numbers beyond the range of a cell in 1 cells"),
    ('<c r="A2"><v>1E+308</v></c>', 1e308, ""),
    ('<c r="A2"><f>1+1</f><v>2</v></c>', 2, ""),
    ('<c r="A2" t="str"><f>""</f><v></v></c>', None, ""),
    ('<c r="A2"><v>9007199254740992</v></c>', 9007199254740992.0, ""),
]


@pytest.mark.parametrize(("cell", "value", "said"), ODD)
def test_cells_that_calamine_gives_as_empty_or_rounded_are_reported(
    cell: str, value: Any, said: str, tmp_path: Path
) -> None:
    taken = take(written(tmp_path, f'<row r="2">{cell}<c r="B2"><v>5</v></c></row>'))
    assert taken.table.to_pydict() == {"a": [value], "b": [5]}
    assert len(taken.remarks) == bool(said)
    assert f"column 'a': {said}" in "".join([*taken.remarks, "column 'a': "])


def test_formulas_whose_values_are_to_be_computed_are_reported(tmp_path: Path) -> None:
    """XlsxWriter stores 0 for every formula, and requests Excel to compute it."""
    cells = "".join(f'<row r="{row}"><c r="B{row}"><f>A{row}</f><v>0</v></c></row>' for row in (2, 3))
    (remark,) = take(written(tmp_path, cells, to_compute=True)).remarks
    assert "column 'b': formulas in 2 cells have values that the file requests to compute again" in remark
    assert "(the first: cell B2: '0')\nopen the file in Excel or LibreOffice, save it" in remark


def test_dates_before_1900_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "early.xlsx"
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        book.add_worksheet().write_column(0, 0, ["a", datetime.date(1899, 1, 1), datetime.date(1899, 1, 2)])
    (remark,) = take(path).remarks
    assert "dates before 1900 in 2 cells, which Excel does not support, are read as midnight" in remark
    assert "(the first: cell A2" in remark


@pytest.mark.parametrize("is_1904", [False, True])
@pytest.mark.parametrize("day", [60, 60.5])
def test_the_leap_day_that_only_excel_has_is_reported(day: float, is_1904: bool, tmp_path: Path) -> None:
    path = tmp_path / "leap.xlsx"
    with xlsxwriter.Workbook(path, {"date_1904": is_1904}) as book:
        shown = book.add_format({"num_format": "yyyy-mm-dd"})
        book.add_worksheet().write_column(0, 0, ["a", 59, day, 61], shown)
    taken = take(path)
    years = {value.year for value in taken.table["a"].to_pylist()}
    assert years == ({1904} if is_1904 else {1900})
    said = "29 February 1900, a day that exists only in Excel, in 1 cells is read as the 28th (the first: cell A3"
    assert [said in remark for remark in taken.remarks] == [True] * (not is_1904)


def test_a_text_among_dates_is_not_a_leap_day(tmp_path: Path) -> None:
    """A text cell holds the number of the text in the workbook, here 60."""
    path = tmp_path / "texts.xlsx"
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet()
        sheet.write_column(0, 1, ["b", *(f"text {number}" for number in range(58))])
        sheet.write_column(0, 0, ["a", datetime.date(2024, 1, 1), "NA"])
    with zipfile.ZipFile(path) as archive:
        assert b' t="s"><v>60</v>' in archive.read("xl/worksheets/sheet1.xml")
    taken = take(path)
    assert taken.table["a"].to_pylist()[:2] == [datetime.date(2024, 1, 1), None]
    assert not [remark for remark in taken.remarks if "29 February" in remark]


def test_fractions_of_a_millisecond_are_reported(tmp_path: Path) -> None:
    fine, coarse = NOON.replace(microsecond=123_456), NOON.replace(microsecond=123_000)
    taken = take(sheet(tmp_path, ("a", "b"), (fine, coarse), (coarse, coarse), (fine, coarse)))
    assert taken.table["a"].to_pylist() == [coarse] * 3
    (remark,) = taken.remarks
    assert "column 'a': times with fractions of a millisecond in 2 cells are rounded to milliseconds" in remark
    assert "the first: cell A2" in remark


def compound(names: list[str]) -> bytes:
    """Return a compound file (OLE) with empty streams of these names, like a workbook with a password."""
    free, chain_end, table = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<9I", 0, 1, 1, 0, 4096, chain_end, 0, chain_end, 0) + struct.pack("<109I", 0, *[free] * 108)
    directory = b""
    for place, name in enumerate(["Root Entry", *names]):
        encoded = name.encode("utf-16-le")
        right = place + 1 if 0 < place < len(names) else free
        directory += encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded) + 2, 5 if place == 0 else 2, 1)
        directory += struct.pack("<3I", free, right, 1 if place == 0 else free).ljust(48, b"\0")
        directory += struct.pack("<IQ", chain_end, 0)
    return header + struct.pack("<128I", table, chain_end, *[free] * 126) + directory.ljust(512, b"\0")


def test_a_workbook_with_a_password_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(compound(["EncryptionInfo", "EncryptedPackage"]))
    assert "is protected by a password" in refusal(tmp_path / "a.xlsx")


def test_a_zip_that_is_not_a_workbook_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("hello.txt", "world")
    assert "cannot be read" in refusal(tmp_path / "a.xlsx")


def test_a_spreadsheet_of_opendocument_is_read(tmp_path: Path) -> None:
    cells = [[("string", "a"), ("string", "b")], [("float", "1"), ("string", "x")], [("float", "2.5"), ("date", None)]]

    def cell(kind: str, value: str | None) -> str:
        if value is None:
            return '<table:table-cell office:value-type="date" office:date-value="2024-01-02"/>'
        number = f' office:value="{value}"' if kind == "float" else ""
        return f'<table:table-cell office:value-type="{kind}"{number}><text:p>{value}</text:p></table:table-cell>'

    rows = "".join(f"<table:table-row>{''.join(cell(*each) for each in row)}</table:table-row>" for row in cells)
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    with zipfile.ZipFile(tmp_path / "table.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", '<?xml version="1.0"?><manifest:manifest xmlns:manifest="m"/>')
        archive.writestr(
            "content.xml",
            f'<?xml version="1.0"?><office:document-content {spaces}><office:body><office:spreadsheet>'
            f'<table:table table:name="S">{rows}</table:table></office:spreadsheet></office:body>'
            "</office:document-content>",
        )
    taken = take(tmp_path / "table.ods")
    assert taken.table.to_pydict() == {"a": [1.0, 2.5], "b": ["x", "2024-01-02"]}
    assert taken.understood["sheet"] == "'S' (1 of 1)"
