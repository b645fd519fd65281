"""Values of a CSV file are unchanged, changed with a warning, or refused; never changed silently."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pytest

from data_generator.imported import byte_stream
from data_generator.imported.byte_stream import ByteStream
from data_generator.imported.refusal import Refused
from data_generator.imported.tables.csv_layout import QuoteCheck
from tests.data_generator.imported.tables.table_files import refusal, take

Make = Callable[..., Path]


@pytest.fixture
def csv(tmp_path: Path) -> Make:
    def make(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


UTC = datetime.UTC


def at(*numbers: int, tz: Any = None) -> datetime.datetime:
    return datetime.datetime(*numbers, tzinfo=tz)  # type: ignore[arg-type]


KINDS: list[Any] = [
    # --- integers
    ("int64 at its ends", ["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)], pa.int64(), None),
    ("unsigned", ["18446744073709551615", "0"], [2**64 - 1, 0], pa.uint64(), None),
    ("beyond 64 bits", ["18446744073709551616", "1"], None, pa.string(), "1 number beyond 64 bits (line 2: '184467"),
    ("unsigned and negative", ["9223372036854775808", "-1"], None, pa.string(), "beyond 64 bits"),
    ("far beyond", ["1" * 400, "1"], None, pa.string(), "beyond 64 bits"),
    ("padded", [" 12", "7 "], [12, 7], pa.int64(), None),
    # --- codes
    ("leading zeros", ["00501", "12"], [501, 12], pa.int64(), "int64; 1 value had leading zeros (line 2: '00501')"),
    ("negative leading zeros", ["-007", "12"], [-7, 12], pa.int64(), "had leading zeros (line 2: '-007')"),
    ("zeros before a point", ["007.5", "1.5"], [7.5, 1.5], pa.float64(), "had leading zeros"),
    ("plus signs", ["+420", "1"], [420, 1], pa.int64(), "1 value had plus signs (line 2: '+420')"),
    ("exponents of codes", ["12E3", "4"], [12000.0, 4.0], pa.float64(), "had exponents, which codes may look like"),
    ("plain exponents", ["1.5e-05", "2E-7"], [1.5e-05, 2e-7], pa.float64(), None),
    ("hexadecimal", ["0x1F", "0Xab"], None, pa.string(), "hexadecimal numbers in 2 of 2 values (line 2: '0x1F')"),
    ("hexadecimal among numbers", ["0x1F", "12"], None, pa.string(), "hexadecimal numbers in 1 of 2 values"),
    # --- decimals
    ("a zero before a point is not a code", ["0.5", "0"], [0.5, 0.0], pa.float64(), None),
    ("17 digits that come back", ["0.10000000000000001", "0.3"], [0.1, 0.3], pa.float64(), None),
    ("20 digits of a float64", ["0.1000000000000000055511", "1.5"], [0.1, 1.5], pa.float64(), None),
    ("more digits than it holds", ["0.1234567890123456789", "1.5"], [0.12345678901234568, 1.5], pa.float64(), "digits"),
    ("integers among decimals", ["9007199254740993", "0.5"], [2.0**53, 0.5], pa.float64(), "1 value had more digits"),
    ("beyond float64", ["1e400", "1.5"], None, pa.string(), "1 number beyond the range of float64"),
    ("below float64", ["1e-400", "1.5"], [0.0, 1.5], pa.float64(), "1 value had more digits than it holds"),
    ("infinity", ["inf", "1.5"], [float("inf"), 1.5], pa.float64(), None),
    ("infinity alone is text", ["inf", "inf"], None, pa.string(), None),
    ("thousands", ['"1,234"', '"12,345,678"'], ["1,234", "12,345,678"], pa.string(), "separators between thousands"),
    ("thousands of Switzerland", ["1'234", "5'678.5"], None, pa.string(), "separators between thousands"),
    ("decimal commas", ['"1,5"', '"-2,25"'], ["1,5", "-2,25"], pa.string(), "a decimal comma in 2 of 2 values"),
    ("decimal commas and three decimals", ['"0,500"', '"1,250"', '"2,750"'], ["0,500", "1,250", "2,750"], pa.string(),
     "a decimal comma in 3 of 3 values"),
    ("thousands or decimals", ['"1,250"', '"2,750"'], ["1,250", "2,750"], pa.string(), "thousands or decimal commas"),
    ("percent", ["12%", "3.5 %"], None, pa.string(), "percentages in 2 of 2 values (line 2: '12%')"),
    ("dollars", ["$5", '"$1,200.50"'], ["$5", "$1,200.50"], pa.string(), "amounts of a currency"),
    ("euros behind", ["5 €", "7.50 EUR"], None, pa.string(), "amounts of a currency"),
    ("negative in parentheses", ["(5)", "(7.5)", "3"], None, pa.string(), "negative numbers in parentheses"),
    # --- booleans and missing values
    ("booleans", ["True", "FALSE", "true"], [True, False, True], pa.bool_(), None),
    ("booleans of other spelling", ["tRue", "False"], None, pa.string(), None),
    ("zeros and ones", ["1", "0"], [1, 0], pa.int64(), None),
    ("a word for missing among text", ["NA", "CZ"], [None, "CZ"], pa.string(), "missing in 1 row (line 2: 'NA')"),
    ("a word for missing among numbers", ["NA", "5"], [None, 5], pa.int64(), None),
    ("words for missing alone", ["NA", "None"], [None, None], pa.float64(), "missing in 2 rows (line 2: 'NA')"),
    ("a word for missing among codes", ["NA", "9" * 20], [None, "9" * 20], pa.string(), "missing in 1 row"),
    ("a word for missing among dates that stay text", ["NA", "2024-02-30"], [None, "2024-02-30"], pa.string(),
     "missing in 1 row"),
    # --- dates
    ("sentinel dates", ["9999-12-31", "0001-01-01"], [datetime.date.max, datetime.date.min], pa.date32(), None),
    ("points in time beyond ns", ["9999-12-31 23:59:59", "0001-01-01 00:00:00"],
     [at(9999, 12, 31, 23, 59, 59), at(1, 1, 1)], pa.timestamp("us"), None),
    ("fractions", ["2024-01-01T10:00:00.25", "2024-01-01T10:00:00"],
     [at(2024, 1, 1, 10, 0, 0, 250000), at(2024, 1, 1, 10)], pa.timestamp("us"), None),
    ("offsets", ["2024-01-01T10:00:00+02:00", "2024-01-01T10:00:00Z"],
     [at(2024, 1, 1, 8, tz=UTC), at(2024, 1, 1, 10, tz=UTC)], pa.timestamp("us", "UTC"), "1 of 2 points in time"),
    ("ns of year 9999", ["9999-12-31T00:00:00.123456789", "2024-01-01T00:00:00"], None, pa.string(), "stays text"),
    ("offsets in some", ["2024-01-01T10:00:00+02:00", "2024-01-01T10:00:00"], None, pa.string(), "no offset from UTC"),
    ("no such day", ["2024-02-30", "2024-01-01"], None, pa.string(), "stays text"),
    ("day first", ["31.12.2024", "01.02.2024"], None, pa.string(), "dates with the day first in 2 of 2 values"),
    ("day first with slashes", ["31/12/2024 10:30", "1/2/2024 09:00"], None, pa.string(), "dates with the day first"),
    ("month first", ["12/31/2024", "1/2/2024"], None, pa.string(), "dates with the month first"),
    ("day or month first", ["1/2/2024", "3/4/2024"], None, pa.string(), "cannot be distinguished"),
    ("slashes, year first", ["2024/01/31", "2024/2/1"], None, pa.string(), "dates in 2 of 2 values"),
    ("the zone in words", ["2024-01-31 10:00:00 UTC"], None, pa.string(), "other forms of dates in 1 of 1 value"),
    ("the zone in words in most", ["2024-01-31", "2024-01-31 9:00 UTC", "2024-02-01 9:00 UTC"], None, pa.string(),
     "other forms of dates in 2 of 3 values (line 3: '2024-01-31 9:00 UTC')"),
    ("hours of one digit", ["2024-01-31 9:05", "2024-01-31 10:05"], None, pa.string(), "other forms of dates in 1"),
    ("months of one digit", ["2024-1-5", "2024-11-15"], None, pa.string(), "other forms of dates in 1 of 2 values"),
    ("years of two digits", ["31.12.24", "01.01.25"], None, pa.string(), "dates with the day first in 2 of 2 values"),
    ("numbers with hyphens", ["5555-12-34567", "5555-1-2345"], None, pa.string(), None),
    ("times", ["9:30", "10:15:30"], [datetime.time(9, 30), datetime.time(10, 15, 30)], pa.time32("s"), None),
    ("no time of the day", ["25:30", "10:15"], None, pa.string(), None),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "values", "kind", "warned"), [pytest.param(*row[1:], id=row[0]) for row in KINDS])
def test_a_value_arrives_or_a_warning_says_what_it_became(
    cells: list[str], values: list[Any] | None, kind: pa.DataType, warned: str | None, csv: Make
) -> None:
    taken = take(csv("a,b\n" + "".join(f"{cell},x\n" for cell in cells)))
    assert taken.table["a"].type == kind
    assert taken.table["a"].to_pylist() == (cells if values is None else values)
    about = [remark for remark in taken.remarks if "column 'a'" in remark]
    assert (about == []) if warned is None else (warned in about[0]), taken.remarks


def test_a_warning_names_column_count_example_and_option(csv: Make) -> None:
    taken = take(csv("id,zip\n1,501\n2,00501\n3,00502\n"))
    assert taken.remarks == [
        "column 'zip': int64; 2 values had leading zeros (line 3: '00501')\n--column zip=text keeps the column as text"
    ]


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["00501", "NA", ""], "text", ["00501", "NA", None]),
        (["0x1F", "1'234", "+5"], "int64", [31, 1234, 5]),
        (["18446744073709551615", "1"], "uint64", [2**64 - 1, 1]),
        (["12%", "$5.5", "(3)", "5 €", "-€5"], "float64", [12.0, 5.5, -3.0, 5.0, -5.0]),
        (["1.5", "12.25", "NA"], "decimal(5,2)", [Decimal("1.50"), Decimal("12.25"), None]),
        (["yes", "N", "1"], "boolean", [True, False, True]),
        (["2024/1/3", "2024-01-05"], "date", [datetime.date(2024, 1, 3), datetime.date(2024, 1, 5)]),
        (["2024-01-01", "2024-01-02 10:00"], "timestamp", [at(2024, 1, 1), at(2024, 1, 2, 10)]),
        (["2024-01-01T10:00", "2024-01-02"], "timestamp-utc", None),
        (["9:30", "10:00:00.5"], "time", [datetime.time(9, 30), datetime.time(10, 0, 0, 500000)]),
    ],
)
def test_a_column_becomes_what_the_user_asks_for(
    cells: list[str], kind: str, values: list[Any] | None, csv: Make
) -> None:
    taken = take(csv("a,b\n" + "".join(f"{cell},x\n" for cell in cells)), columns={"a": kind})
    assert [remark for remark in taken.remarks if "column 'a'" in remark] == []
    if values is not None:
        assert taken.table["a"].to_pylist() == values


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "1.5"], "int64"),
        (["1", "-1"], "uint64"),
        (["1", "abc"], "float64"),
        (["1", "1.555"], "decimal(5,2)"),
        (["1", "1234.5"], "decimal(5,2)"),
        (["yes", "maybe"], "boolean"),
        (["2024-01-01", "01.02.2024"], "date"),
        (["2024-01-01T10:00", "2024-01-01T10:00Z"], "timestamp"),
        (["9:30", "24:00"], "time"),
        (["1.5", "1e999"], "float64"),
        (["1", "12,34"], "int64"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_line(cells: list[str], kind: str, csv: Make) -> None:
    said = refusal(csv("a;b\n" + "".join(f"{cell};x\n" for cell in cells)), columns={"a": kind})
    assert f"table.csv, line 3: column 'a' holds {cells[1]!r}, which does not fit `columns={{'a': {kind!r}}}`" in said


def test_a_column_that_is_not_there_is_refused_with_those_that_are(csv: Make) -> None:
    said = refusal(csv("a,b\n1,2\n"), columns={"c": "text"})
    assert "has no column 'c', which is given in `columns`\n  Its columns are a, b" in said


AS_ISO = "write them as YYYY-MM-DD"


@pytest.mark.parametrize(
    ("cells", "options", "advice", "advised", "kind"),
    [
        (["0,500", "1,250"], {}, "--decimal ,", {"decimal": ","}, pa.float64()),
        (["1,250", "12,500"], {}, "--column a=float64", {"columns": {"a": "float64"}}, pa.float64()),
        (["1,250", "12,500"], {}, "--decimal , as decimals", {"decimal": ","}, pa.float64()),
        (["1 234,5", "2 500,0"], {"decimal": ","}, "a=float64", {"columns": {"a": "float64"}}, pa.float64()),
        (["1.5", "2.5"], {"decimal": ","}, "omit --decimal ,", {"decimal": "."}, pa.float64()),
        (["0.500", "1.250"], {"decimal": ","}, "omit --decimal ,", {"decimal": "."}, pa.float64()),
        (["1,5", "x", "2,5"], {"decimal": ","}, "repair the file", {}, None),
        (["31.12.2024", "1.1.2025"], {}, "--day-first", {"day_first": True}, pa.date32()),
        (["31.12.2024", "1.1.2025", "soon"], {}, AS_ISO, {}, None),
        (["31.12.24", "01.01.25"], {}, AS_ISO, {}, None),
        (["31.12.24", "01.01.25"], {"day_first": True}, AS_ISO, {}, None),
        (["12/31/2024", "1/2/2024"], {"day_first": True}, AS_ISO, {}, None),
        (["2024/1/31"], {}, "--column a=date", {"columns": {"a": "date"}}, pa.date32()),
        (["2024-1-31", "2024-11-5"], {}, "--column a=date", {"columns": {"a": "date"}}, pa.date32()),
        (["2024-01-31 9:05"], {}, "--column a=timestamp", {"columns": {"a": "timestamp"}}, pa.timestamp("us")),
        (["2024-01-31 10:00:00 UTC"], {}, AS_ISO, {}, None),
    ],
)
def test_the_advice_reads_a_column_that_stays_text(
    cells: list[str],
    options: dict[str, Any],
    advice: str,
    advised: dict[str, Any],
    kind: pa.DataType | None,
    csv: Make,
) -> None:
    path = csv("a;b\n" + "".join(f"{cell};x\n" for cell in cells))
    taken = take(path, **options)
    assert taken.table["a"].to_pylist() == cells
    (remark,) = (remark for remark in taken.remarks if "column 'a'" in remark)
    assert advice in remark.partition("\n")[2]
    if kind is None:
        assert "--" not in remark
    else:
        assert take(path, **{**options, **advised}).table["a"].type == kind


def test_a_group_of_thousands_does_not_begin_with_0(csv: Make) -> None:
    path = csv("a;b\n0,500;x\n1,250;y\n")
    assert "line 2: column 'a' holds '0,500', which does not fit" in refusal(path, columns={"a": "float64"})
    assert take(csv("a;b\n0.500;x\n"), decimal=",").table["a"].to_pylist() == ["0.500"]
    assert take(csv("a;b\n1,250;x\n"), columns={"a": "float64"}).table["a"].to_pylist() == [1250.0]


@pytest.mark.parametrize(
    ("commas", "points", "warned"),
    [
        (["0,500", "1,250"], ["1.234", "12.000"], True),
        (["1,5", "2,25"], ["-1.234", "7"], True),
        (["0,500", "1,250"], ["1.234", "1.5"], False),
        (["0,500", "1,250"], ["1.234", "1234"], False),
        (["0,500", "1,250"], ["0.500", "1.234"], False),
        (["0,500", "1,250"], ["5", "7"], False),
        (["1,234", "12,000"], ["1.234", "12.000"], False),
        (["x", "y"], ["1.234", "12.000"], False),
    ],
)
def test_points_in_a_file_with_decimal_commas_may_separate_thousands(
    commas: list[str], points: list[str], warned: bool, csv: Make
) -> None:
    path = csv("a;b\n" + "".join(f"{left};{right}\n" for left, right in zip(commas, points, strict=True)))
    taken = take(path)
    assert taken.table["b"].to_pylist() == [float(point) for point in points]
    about = [remark for remark in taken.remarks if "column 'b'" in remark]
    assert len(about) == warned
    assert taken.facts["changed"] == ["b"] * warned
    if warned:
        first = next(point for point in points if "." in point)
        assert f"but other columns have decimal commas (line 2: {first!r})\n--decimal , reads" in about[0]
        assert not [remark for remark in take(path, columns={"b": "float64"}).remarks if "column 'b'" in remark]


def test_times_of_day_are_named_because_durations_look_the_same(csv: Make) -> None:
    path = csv("lap,b\n1:45,x\n2:10,y\n")
    taken = take(path)
    assert taken.understood["times of day"] == "'lap'; if durations are meant, --column lap=text keeps them as text"
    assert take(path, columns={"lap": "text"}).table["lap"].to_pylist() == ["1:45", "2:10"]
    assert "times of day" not in take(path, columns={"lap": "time"}).understood


@pytest.mark.parametrize(("cells", "kind"), [(["NA", "x"], pa.string()), (["NA", "null"], pa.float64())])
def test_words_for_missing_values_change_a_column_unless_it_is_named(
    cells: list[str], kind: pa.DataType, csv: Make
) -> None:
    path = csv("a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    taken = take(path)
    assert (taken.table["a"].type, taken.facts["changed"]) == (kind, ["a"])
    for named in ("text", "category"):
        kept = take(path, columns={"a": named})
        assert (kept.table["a"].to_pylist(), kept.facts["changed"], kept.remarks) == (cells, [], [])


def test_decimal_commas_and_days_first_are_read_on_request(csv: Make) -> None:
    path = csv("when;price;count\n31.12.2024;1.234,5;7\n1.2.2024;-2,25;8\n")
    taken = take(path, decimal=",", day_first=True)
    assert taken.table.to_pydict() == {
        "when": [datetime.date(2024, 12, 31), datetime.date(2024, 2, 1)],
        "price": [1234.5, -2.25],
        "count": [7, 8],
    }
    assert taken.understood["decimal"] == "comma"
    assert ["points between thousands" in remark for remark in taken.remarks] == [True]


# --- names -----------------------------------------------------------------------------------------------------------


def test_columns_without_a_name_keep_their_values(csv: Make) -> None:
    path = csv("id,,,v\n0,l,r,1\n1,m,s,2\n")
    taken = take(path)
    assert taken.table.to_pandas().equals(pd.read_csv(path).astype(taken.table.to_pandas().dtypes))
    assert "2 without a name" in taken.understood["header"]


@pytest.mark.parametrize("names", [["1", "1"], ["a", "a"], ["", "Unnamed: 0"]])
def test_a_name_that_two_columns_have_is_refused(names: list[str], csv: Make) -> None:
    assert "the same name" in refusal(csv(",".join(names) + "\n1,2\n"))


@pytest.mark.parametrize("names", [["ID", "id"], [" a", "b"], ["a", "b "], ["Straße", "STRASSE"]])
def test_names_that_may_be_taken_for_another_are_kept_with_a_warning(names: list[str], csv: Make) -> None:
    taken = take(csv(",".join(names) + "\n1,2\n"))
    assert taken.table.column_names == names
    assert any(remark.startswith("column names") for remark in taken.remarks)


@pytest.mark.parametrize("name", ['say ""hi""', "a, b", "two\nlines", "tab\there"])
def test_quoted_names_are_kept(name: str, csv: Make) -> None:
    taken = take(csv(f'"{name}",b\n1,2\n'))
    assert taken.table.column_names == [name.replace('""', '"'), "b"]


@pytest.mark.parametrize(
    ("content", "warned"),
    [
        ("1,alice\n2,bob\n", True),
        ("2024,1.5\n2023,2.5\n", True),
        ("alice,paris\nbob,rome\neve,paris\n", True),
        ("2024-01-01,open,true\n2024-01-02,closed,false\n2024-01-03,held,true\n", True),
        ("2024-01-01,open\n2024-01-02,closed\n2024-01-03,held\n", True),
        ("2024-01-01 10:00,open\n2024-01-02 10:00,closed\n", True),
        ("9:30,open\n10:15,closed\n", True),
        ("open,true\nclosed,false\n", True),
        ("1,x,7\n2,y,8\n", True),
        ("NA,x,7\n2,y,8\n", True),
        ("id,name\n1,alice\n2,bob\n", False),
        ("2024-01-01,2024-01-02\n1,2\n3,4\n", False),
        ("day,true\n2024-01-01,5\n2024-01-02,6\n", False),
        ("id,2023\n1,alice\n2,bob\n", False),
        ("name,city\nbob,rome\neve,paris\n", False),
    ],
)
def test_a_missing_header_is_warned_of_and_never_guessed(content: str, warned: bool, csv: Make) -> None:
    taken = take(csv(content))
    assert taken.table.column_names == content.split("\n")[0].split(",")
    assert any("--no-header" in remark for remark in taken.remarks) == warned


@pytest.mark.parametrize(
    ("content", "warned"),
    [
        ("7,,x\n8,3,y\n9,4,z\n", True),
        ("2024-01-01,,x\n2024-01-02,3,y\n2024-01-03,4,z\n", True),
        (",a,b\n0,3,6\n1,4,7\n", False),
        (",0,1\n0,3,6\n1,4,7\n", False),
    ],
)
def test_a_missing_header_is_warned_of_where_a_value_is_empty(content: str, warned: bool, csv: Make) -> None:
    assert any("--no-header" in remark for remark in take(csv(content)).remarks) == warned


def test_without_a_header_the_first_row_counts(csv: Make) -> None:
    taken = take(csv("1,alice\n02,bob\n"), header=False)
    assert taken.table.to_pydict() == {"0": [1, 2], "1": ["alice", "bob"]}
    assert "(line 2: '02')" in taken.remarks[0]


# --- layout ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "columns", "delimiter"),
    [
        ("artikel, nr;preis, netto\n1;0,5\n2;1,5\n", 2, "semicolon"),
        ("a|b\n1,5|2\n3,5|4\n", 2, "'|'"),
        ("a\tb;c\n1\t2\n3\t4\n", 2, "tab"),
        ("a,b\n1,2;3\n4,5\n", 2, "comma"),
        ('"a;b",c\n"1;2",3\n', 2, "comma"),
        ("sep=;\na;b,c\n1;2\n", 2, "semicolon"),
        ('"sep=|"\na|b\n1|2\n', 2, "'|'"),
        ("# made by x\n# on monday\na,b\n1,2\n", 2, "comma"),
        ("#a,b\n1,2\n", 2, "comma"),
    ],
)
def test_the_delimiter_divides_header_and_rows_alike(content: str, columns: int, delimiter: str, csv: Make) -> None:
    taken = take(csv(content))
    assert (taken.table.num_columns, taken.understood["delimiter"]) == (columns, delimiter)


def test_lines_before_the_header_are_counted_in_places(csv: Make) -> None:
    taken = take(csv("# a note, with a comma\na;b\n1;x\n02;y\n"))
    assert taken.table["a"].to_pylist() == [1, 2]
    assert taken.understood["header"] == "line 2"
    assert any("begin with '#'" in remark for remark in taken.remarks)
    assert any("(line 4: '02')" in remark for remark in taken.remarks)


def test_a_header_with_a_hash_stays_one(csv: Make) -> None:
    assert take(csv("#chrom\tpos\n1\t100\n", "t.tsv")).table.column_names == ["#chrom", "pos"]


def test_several_delimiters_that_fit_are_warned_of(csv: Make) -> None:
    taken = take(csv("a;b,c;d\n1;2,3;4\n"))
    assert taken.understood["delimiter"] == "semicolon"
    assert "every line can be divided by semicolon, which is used, and by comma" in taken.remarks[0]
    assert take(csv("a;b,c;d\n1;2,3;4\n"), delimiter=",").table.column_names == ["a;b", "c;d"]


@pytest.mark.parametrize(
    ("content", "said"), [("a||b\n1||2\n", "'||'"), ("a||b||c\n1||2||3\n", "'||'"), ("a;;b\n1;;2\n", "';;'")]
)
def test_a_delimiter_of_two_characters_is_refused_with_the_next_step(content: str, said: str, csv: Make) -> None:
    assert (
        f"has the delimiter {said}, but a delimiter must be one character\n  Replace the delimiter first: sed"
        in refusal(csv(content))
    )


@pytest.mark.parametrize(
    ("content", "said"), [("a::b\n1::2\n", "'::'"), ("a^b\n1^2\n", "--delimiter '^'"), ("a~b\n1~2\n", "'~'")]
)
def test_a_file_of_one_column_names_what_may_divide_it(content: str, said: str, csv: Make) -> None:
    taken = take(csv(content))
    assert taken.table.num_columns == 1
    assert said in "".join(taken.remarks)


ESCAPED = "pandas.read_csv(FILE, escapechar='\\\\').to_csv(NEW, index=False)"


@pytest.mark.parametrize(
    "content",
    [
        'a,b\n"he \\"said\\" so",1\n',
        'a,b\n"5" wide",1\n',
        'a,b\n1,2\n"x"y"z",3\n',
        'a,b\n1,2\n2,"6";7"\n',
        'a;b\n1;2\n2;"6",7"\n',
        'a,b\n"C:\\",1\n"5" wide",1\n',
    ],
)
def test_a_quote_that_is_not_doubled_is_refused(content: str, csv: Make) -> None:
    said = refusal(csv(content))
    assert 'has a quotation mark that is not doubled ("") within a quoted value' in said
    assert f"line {content.count(chr(10))}" in said
    assert (ESCAPED in said) == ('\\"' in content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('id,size\n1,"5\\""\n2,"6\\""\n3,"7\\""\n4,"8\\""\n', "line 2: has a quotation mark that is not doubled"),
        ('a,b\n1,"5\\"",x\n2,"6\\"",y\n', "line 2: has a quotation mark that is not doubled"),
        ('a,b\n1,2\n2,"5\\""\n3,x\n', "line 3: begins a quoted value that is not closed"),
    ],
)
def test_backslashes_before_quotes_do_not_join_rows(content: str, said: str, csv: Make) -> None:
    text = refusal(csv(content))
    assert said in text
    assert ESCAPED in text


def test_a_quote_that_is_not_closed_at_the_end_is_refused(csv: Make) -> None:
    said = refusal(csv('a,b\n1,2\n2,"5\n3,4\n'))
    assert "line 3: begins a quoted value that is not closed\n  Close its quotation mark." in said


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 8, 13, 1000])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize(
    ("cells", "is_irregular"),
    [
        (['"C:\\"', "1"], False),
        (['""""', '"""a"""'], False),
        (['""', '","'], False),
        (['"a\n""b"', '"\\"""'], False),
        (['"a""', "1"], True),
        (["1", '"a"b"'], True),
        (["1", 'a"'], True),
        (['"a";"b"', "1"], True),
    ],
)
def test_quotes_are_checked_across_blocks(cells: list[str], is_irregular: bool, end: str, block_bytes: int) -> None:
    content = ("a,b\n" + ",".join(cells) + end).encode()
    check = QuoteCheck(",")
    for start in range(0, len(content), block_bytes):
        check.see(content[start : start + block_bytes])
    check.end()
    assert check.is_irregular == is_irregular


@pytest.mark.parametrize("value", ['5" pipe', "it's", "C:\\dir\\", 'say ""hi""', '""a""', '""', 'C:\\""', '5"', '\\"x'])
def test_quotes_that_are_part_of_a_value_are_kept(value: str, csv: Make) -> None:
    cell = f'"{value}"' if '""' in value else value
    assert take(csv(f"a,b\n{cell},1\n")).table["a"].to_pylist() == [value.replace('""', '"')]


def test_a_backslash_may_end_a_quoted_value(csv: Make) -> None:
    taken = take(csv('a,b\n"C:\\","D:\\dir\\"\n"E:\\",""\n'))
    assert taken.table.to_pydict() == {"a": ["C:\\", "E:\\"], "b": ["D:\\dir\\", None]}


# --- encodings and compression ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Zoë", "latin-1"),
        ("10 €", "cp1252"),
        ("“q”", "cp1252"),
        ("Привет", "cp1251"),
        ("Łódź", "iso8859-2"),
        ("日本", "shift_jis"),
    ],
)
def test_another_encoding_is_read_on_request_and_never_guessed(text: str, encoding: str, csv: Make) -> None:
    path = csv(f"a,b\nx,1\n{text},2\n".encode(encoding))
    said = refusal(path)
    assert "line 3: byte 0x" in said
    assert "Name the file's encoding by `encoding`, e.g. cp1252 (Western European" in said
    assert "cp1251 (Cyrillic)" in said
    assert "Try" not in said
    taken = take(path, encoding=encoding)
    assert taken.table["a"].to_pylist() == ["x", text]
    assert taken.understood["encoding"] == encoding


def test_one_broken_character_of_utf8_is_not_taken_for_another_encoding(csv: Make) -> None:
    said = refusal(csv("a,b\nčaj,1\nžár,2\nůl,3\n".encode() + b"\xc5,4\n"))
    assert "line 5: byte 0xc5 is not UTF-8, unlike the text around it" in said


def test_utf16_without_a_mark_is_named(csv: Make) -> None:
    path = csv("a,b\n1,x\n".encode("utf-16-le"))
    assert "`encoding='utf-16-le'`" in refusal(path)
    assert take(path, encoding="utf-16-le").table.to_pydict() == {"a": [1], "b": ["x"]}


def test_a_wrong_encoding_is_refused_by_its_line(csv: Make) -> None:
    said = refusal(csv("a,b\n1,č\n"), encoding="ascii")
    assert "encoding" in said or "is not UTF-8" in said


def zipped(content: bytes, *more: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", content)
        for name in more:
            archive.writestr(name, b"a\n1\n")
    return out.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
    ".zip": zipped,
}


def read_all(file: IO[bytes], path: Path) -> bytes:
    stream = ByteStream(file.fileno(), str(path), path.stat().st_size)
    return b"".join(iter(lambda: stream.read(1 << 16), b""))


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_is_read_as_a_plain_one(ending: str, csv: Make) -> None:
    content = "a,b\n" + "".join(f"{number},x{number}\n" for number in range(5000))
    path = csv(PACKERS[ending](content.encode()), f"table.csv{ending}")
    with path.open("rb") as file:
        assert read_all(file, path) == content.encode()
    assert take(path).table.to_pydict() == {"a": list(range(5000)), "b": [f"x{number}" for number in range(5000)]}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_that_is_cut_is_refused(ending: str, csv: Make) -> None:
    content = "a,b\n" + "".join(f"{number * 7919 % 10007},x{number}\n" for number in range(50000))
    packed = PACKERS[ending](content.encode())
    path = csv(packed[: len(packed) // 2], f"table.csv{ending}")
    with path.open("rb") as file, pytest.raises(Refused, match="cannot be unpacked as"):
        read_all(file, path)


@pytest.mark.parametrize("ending", PACKERS)
def test_a_bomb_is_refused_whatever_packed_it(ending: str, csv: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_stream, "_LEAST_BOMB_BYTES", 1 << 20)
    path = csv(PACKERS[ending](bytes(16 << 20)), f"table.csv{ending}")
    with path.open("rb") as file, pytest.raises(Refused, match="unpacks to more than 200 times its size"):
        read_all(file, path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped(b"a\n1\n", "two.csv"), "of 2 files, but must have exactly one (given: inside.csv, two.csv)"),
        (b"PK\x05\x06" + bytes(18), "is a zip archive of 0 files"),
        (b"PK\x03\x04 broken", "cannot be unpacked as zip"),
    ],
)
def test_an_archive_of_several_files_is_refused(content: bytes, said: str, csv: Make) -> None:
    path = csv(content, "table.csv.zip")
    with path.open("rb") as file, pytest.raises(Refused) as refused:
        ByteStream(file.fileno(), str(path), path.stat().st_size)
    assert said in refused.value.reason
