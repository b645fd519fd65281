"""CSV: types of the whole sample, missing values as in pandas, and line numbers of the file in errors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from data_generator.imported import byte_stream
from data_generator.imported.tables import csv_reader, table_types
from tests.data_generator.imported.tables.table_files import refusal, take


@pytest.fixture
def csv(tmp_path: Path):
    def make(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def column(path: Path, name: str = "a") -> pa.ChunkedArray:
    return take(path).table[name]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2"], pa.int64()),
        (["1", "2.5", "1e3"], pa.float64()),
        (["true", "False"], pa.bool_()),
        (["2024-01-02", "2024-01-03"], pa.date32()),
        (["2024-01-02 10:00:00", "2024-01-03T11:00:00"], pa.timestamp("us")),
        (["2024-01-02 10:00:00.123456", "2024-01-03 11:00:00"], pa.timestamp("us")),
        (["2024-01-02 10:00:00.123456789"], pa.timestamp("ns")),
        (["2024-01-02T10:00:00Z"], pa.timestamp("us", "UTC")),
        (["10:00:00"], pa.time32("s")),
        (["one", "2"], pa.string()),
    ],
)
def test_types_are_those_that_all_values_have(values: list[str], kind: pa.DataType, csv) -> None:
    assert column(csv("a\n" + "\n".join(values) + "\n")).type == kind


def test_a_type_that_only_a_late_row_breaks_is_not_taken(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow alone would find integers in the first block, and fail in the second."""
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1 << 10)
    made = column(csv("a\n" + "1\n" * 5000 + "0.5\n"))
    assert (made.type, len(made), made[-1].as_py()) == (pa.float64(), 5001, 0.5)


def test_too_many_columns_are_refused_by_the_header_alone(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow takes gigabytes for the columns of a header of one megabyte."""
    monkeypatch.setattr(csv_reader.pyarrow.csv, "open_csv", lambda *_: pytest.fail("a row is read"))
    names = ",".join(f"c{number}" for number in range(table_types.MOST_COLUMNS + 1))
    assert "has 16,385 columns, more than the limit of 16,384" in refusal(csv(f"{names}\n1\n"))


def test_missing_is_what_pandas_takes_for_missing(csv) -> None:
    path = csv('a,b,c\n1,x,\n,NA,\nnull,"",\n4,None,\n')
    made, expected = take(path).table, pd.read_csv(path)
    for name in "abc":
        assert [value is None for value in made[name].to_pylist()] == expected[name].isna().tolist(), name
    assert (made["a"].type, made["b"].type, made["c"].type) == (pa.int64(), pa.string(), pa.float64())


def test_the_words_for_missing_are_those_of_pandas() -> None:
    from pandas._libs.parsers import STR_NA_VALUES

    from data_generator.imported.tables.text_types.distinct_texts import MISSING

    assert set(MISSING) == set(STR_NA_VALUES)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str, csv) -> None:
    path = csv(delimiter.join(("a", '"b,;|\t"', "c")) + "\n" + delimiter.join(("1", "2", "3")) + "\n")
    assert take(path).table.column_names == ["a", "b,;|\t", "c"]


def test_a_mark_at_the_beginning_is_not_part_of_the_first_name(csv) -> None:
    assert take(csv(b"\xef\xbb\xbfa,b\r\n1,2\r\n")).table.to_pylist() == [{"a": 1, "b": 2}]


def test_values_may_hold_newlines_and_delimiters(csv) -> None:
    made = column(csv('a,b\n"one\ntwo, ""three""",2\n'))
    assert made.to_pylist() == ['one\ntwo, "three"']


def test_a_name_that_two_columns_have_is_refused(csv) -> None:
    assert "columns 1 and 3 have the same name 'a'" in refusal(csv("a,b,a\n1,2,3\n"))


def test_an_empty_name_is_called_as_pandas_calls_it(csv) -> None:
    path = csv(",a,\n0,1,2\n")
    assert take(path).table.column_names == list(pd.read_csv(path).columns) == ["Unnamed: 0", "a", "Unnamed: 2"]


def test_a_row_of_other_length_is_reported_with_its_line(csv) -> None:
    said = refusal(csv('a,b\n"1\n\n1",2\n\n3,4\n5,6,7\n8,9\n'))
    assert "table.csv, line 7: has 3 columns, but the header has 2 (the delimiter is a comma)" in said


def test_a_row_of_other_length_is_reported_beyond_the_first_block(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1 << 10)
    assert "line 3,002: has 1 column, but the header has 2" in refusal(csv("a,b\n" + "1,2\n" * 3000 + "3\n"))


def test_a_mixed_column_stays_text_and_the_line_is_reported(csv) -> None:
    taken = take(csv("a,b\n1,x\n2,y\n\n3,z\nfour,z\n"))
    assert taken.table["a"].to_pylist() == ["1", "2", "3", "four"]
    (remark,) = taken.remarks
    assert "column 'a': mixed, stays text; no number in 1 of 4 values (line 6: 'four')\n" in remark


def test_the_line_of_a_mixed_column_is_that_of_the_whole_file(csv) -> None:
    rows = [f"{number}" for number in range(1000)]
    rows[900] = "nine hundred"
    (remark,) = take(csv("a\n" + "\n".join(rows) + "\n"), 640).remarks
    assert "(line 902: 'nine hundred')" in remark


def test_dates_among_which_one_is_none_are_mixed(csv) -> None:
    (remark,) = take(csv("a\n2024-01-01\n2024-01-02\nsoon\n")).remarks
    assert "(line 4: 'soon')" in remark


def test_text_that_contains_a_number_is_just_text(csv) -> None:
    assert take(csv("a\none\ntwo\n3\n")).remarks == []


@pytest.mark.parametrize("packed", [False, True])
def test_invalid_utf8_is_reported_with_its_line(packed: bool, csv) -> None:
    content = "a,b\n1,x\n2,é\n".encode("latin1")
    path = csv(gzip.compress(content), "table.csv.gz") if packed else csv(content)
    assert "line 3: byte 0xe9 is not UTF-8\n  Name the file's encoding by `encoding`" in refusal(path)


def test_a_name_that_is_not_utf8_is_reported(csv) -> None:
    assert "line 1: byte 0xe9 is not UTF-8" in refusal(csv("a,é\n1,2\n".encode("latin1")))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(csv, encoding: str) -> None:
    assert take(csv("a,b\n1,čaj\n".encode(encoding))).table.to_pylist() == [{"a": 1, "b": "čaj"}]


def test_a_quotation_mark_that_is_never_closed_is_reported_with_its_line(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1 << 20)
    said = refusal(csv('a,b\n1,2\n3,"4\n' + "5,6\n" * 600_000))
    assert "line 3: begins a row of more than 1 MB" in said


def test_a_bomb_is_refused(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_stream, "_LEAST_BOMB_BYTES", 1 << 20)
    path = csv(gzip.compress(b"a\n" + b"1\n" * (8 << 20)), "table.csv.gz")
    assert "unpacks to more than 200 times its size" in refusal(path)


def test_a_bomb_of_one_cell_is_refused(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1 << 20)
    path = csv(gzip.compress(b"a\n" + bytes(16 << 20)), "table.csv.gz")
    said = refusal(path)
    assert "begins a row of more than" in said or "becomes more than 200 times" in said


def test_a_packed_file_that_ends_early_is_refused(csv) -> None:
    whole = gzip.compress(("a\n" + "".join(f"{number * 7919 % 10_007}\n" for number in range(50_000))).encode())
    assert "ended before the end-of-stream marker" in refusal(csv(whole[: len(whole) // 2], "table.csv.gz"))


def test_control_characters_do_not_reach_the_terminal(csv) -> None:
    said = refusal(csv("\x1b[31m,\x1b[31m\n1,2\n"))
    assert "\\x1b[31m" in said


def test_only_a_header_is_refused(csv) -> None:
    assert "has no rows" in refusal(csv("a,b\n"))
    assert "has no rows" in refusal(csv("a,b"))
    assert "has no" in refusal(csv("\n\n"))


def test_a_cell_without_an_end_is_reported_with_its_line(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1 << 20)
    path = csv('a,b\n1,2\n3,"')
    with path.open("r+b") as file:
        file.truncate(64 << 20)
    assert "line 3: begins a row of more than 1 MB" in refusal(path)


def test_many_columns_need_no_memory_of_their_own(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow would reserve a block for each."""
    names = [f"c{number}" for number in range(600)]
    rows = "".join(
        ",".join(f"{row}.5" if number % 2 else f"text {row}" for number in range(600)) + "\n" for row in range(300)
    )
    path = csv(",".join(names) + "\n" + rows)
    before = reserved_bytes()
    made = take(path, 160).table
    assert made.num_columns == 600
    assert made["c0"].to_pylist()[-1] == "text 299"
    assert made["c1"].to_pylist()[0] == 0.5
    assert reserved_bytes() - before < 600 << 20


def reserved_bytes() -> int:
    """Return the most memory that this process has ever mapped."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmPeak")]
    return int(line.split()[1]) << 10


def test_invalid_utf8_is_reported_among_many_columns(csv) -> None:
    header, row = ",".join(f"c{number}" for number in range(40)), ",".join(["x"] * 39)
    assert "line 3: byte 0xe9 is not UTF-8" in refusal(csv(f"{header}\n{row},x\n{row},é\n".encode("latin1")))


def test_a_file_without_an_end_of_its_first_line_is_refused(csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1 << 20)
    assert "line 1: begins a row of more than 1 MB" in refusal(csv(gzip.compress(bytes(4 << 20)), "table.csv.gz"))


def test_a_row_cannot_say_what_is_wrong_with_it(csv) -> None:
    """The parser's message quotes the row."""
    said = refusal(csv("a,b\n1,2\nx: Row #9: Expected 7 columns, got 8,y,z\n"))
    assert "line 3: has 4 columns, but the header has 2" in said
