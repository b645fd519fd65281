"""JSON: every value is unchanged, or a warning names its change, or the file is refused."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from data_generator.imported import byte_stream
from data_generator.imported.tables import json_reader, table_types
from tests.data_generator.imported import packed
from tests.data_generator.imported.tables.table_files import Taken, refusal, take


@pytest.fixture
def lines(tmp_path: Path):
    def make(*rows: object) -> Path:
        path = tmp_path / "table.jsonl"
        path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        return path

    return make


@pytest.fixture
def column(lines):
    """Return the column 'a' of a file whose lines have these JSON texts there."""

    def make(*texts: str, **options: Any) -> Taken:
        return take(lines(*(f'{{"a": {text}}}' for text in texts), '{"a": null}'), **options)

    return make


def test_types_are_those_that_all_lines_have(lines) -> None:
    taken = take(lines({"a": 1, "b": "2024-01-02 10:00:00"}, {"a": 0.5, "c": True}, {"a": None}))
    assert [str(column.type) for column in taken.table.schema] == ["double", "timestamp[us]", "bool"]
    assert taken.table.to_pylist()[2] == {"a": None, "b": None, "c": None}
    assert taken.remarks == []
    assert taken.understood == {
        "records": "one object per line",
        "encoding": "utf-8",
        "missing values": "5 null or left out",
    }


def test_nested_values_become_lists_and_structs(lines) -> None:
    made = take(lines({"a": [1, 2], "b": {"x": 1, "y": ["z"]}}, {"a": [], "b": {"x": None, "y": None}}, {"b": None}))
    assert made.table.schema.field("a").type == pa.list_(pa.int64())
    assert made.table.schema.field("b").type == pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())})
    assert made.table.to_pylist() == [
        {"a": [1, 2], "b": {"x": 1, "y": ["z"]}},
        {"a": [], "b": {"x": None, "y": None}},
        {"a": None, "b": None},
    ]


EXACT = [
    (("1", "-9223372036854775808", "9223372036854775807", "-0"), pa.int64(), [1, -(1 << 63), (1 << 63) - 1, 0]),
    (("18446744073709551615", "0"), pa.uint64(), [(1 << 64) - 1, 0]),
    (("9223372036854775808",), pa.uint64(), [1 << 63]),
    (("1", "0.5", "9007199254740992"), pa.float64(), [1.0, 0.5, 2.0**53]),
    (("1.0", "1E5", "5e-324", "1.7976931348623157e308"), pa.float64(), [1.0, 1e5, 5e-324, 1.7976931348623157e308]),
    (("0.29999999999999999", "1.2345678901234568e-05"), pa.float64(), [0.3, 1.2345678901234568e-05]),
    (("100000000000000000000", "0.5"), pa.float64(), [1e20, 0.5]),
    (("Infinity", "-Infinity", "2"), pa.float64(), [math.inf, -math.inf, 2.0]),
    (('"00123"', '"1e5"', '"true"', '"NA"', '""'), pa.string(), ["00123", "1e5", "true", "NA", ""]),
    (('"\\u0000x"', '"\\ud83d\\ude00"', '"a\\nb"'), pa.string(), ["\0x", "😀", "a\nb"]),
    (("true", "false"), pa.bool_(), [True, False]),
    (("[[], [1]]", "[]"), pa.list_(pa.list_(pa.int64())), [[[], [1]], []]),
    (("[]",), pa.list_(pa.float64()), [[]]),
    (("null",), pa.float64(), [None]),
    (('"2024-01-02"', '"0001-01-01"'), pa.date32(), [datetime.date(2024, 1, 2), datetime.date(1, 1, 1)]),
    (('"2024-01-02T10:00:00.5"',), pa.timestamp("us"), [datetime.datetime(2024, 1, 2, 10, 0, 0, 500_000)]),
    (
        ('"2024-01-02T10:00:00.001Z"',),
        pa.timestamp("us", "UTC"),
        [datetime.datetime(2024, 1, 2, 10, 0, 0, 1_000, datetime.UTC)],
    ),
]


@pytest.mark.parametrize(("texts", "kind", "values"), EXACT, ids=[f"{kind}: {texts[0]}" for texts, kind, _ in EXACT])
def test_what_a_type_holds_arrives_as_it_is_written_and_nothing_is_said(
    texts: tuple[str, ...], kind: pa.DataType, values: list[Any], column
) -> None:
    taken = column(*texts)
    assert taken.table["a"].type == kind
    assert taken.table["a"].to_pylist() == [*values, None]
    assert taken.remarks == []


def test_nan_is_a_value_and_null_is_none(column) -> None:
    values = column("NaN", "1").table["a"]
    assert (values.type, values.null_count) == (pa.float64(), 1)
    assert math.isnan(values[0].as_py())


CHANGED = [
    (("1", "18446744073709551616"), pa.string(), ["1", "18446744073709551616"], "1 number beyond 64 bits"),
    (("-1", "9223372036854775808"), pa.string(), ["-1", "9223372036854775808"], "1 number beyond 64 bits"),
    (("1", "9" * 5000), pa.string(), ["1", "9" * 5000], "1 number beyond 64 bits"),
    (("1", "1e400"), pa.string(), ["1", "1e400"], "1 number beyond the range of float64"),
    (("0.5", "9007199254740993"), pa.float64(), [0.5, 2.0**53], "1 value had more digits"),
    (("0.5", "0.1234567890123456789"), pa.float64(), [0.5, 0.12345678901234568], "1 value had more digits"),
    (("0.5", "1e-400"), pa.float64(), [0.5, 0.0], "1 value had more digits"),
    (("9007199254740993", "NaN"), pa.string(), ["9007199254740993", "NaN"], "NaN among integers"),
    (("1.50", '"x"'), pa.string(), ["1.50", "x"], "mixed, stays text (JSON): number (1), text (1)"),
    (("[1]", '{"x": 1e5}'), pa.string(), ["[1]", '{"x": 1e5}'], "mixed, stays text (JSON): list (1), object (1)"),
    (("true", "1"), pa.string(), ["true", "1"], "mixed, stays text (JSON): boolean (1), number (1)"),
    (
        ('"2024-01-02"', '"soon"'),
        pa.string(),
        ["2024-01-02", "soon"],
        "1 of 2 values are neither dates nor points in time",
    ),
    (
        ('"2024-01-02T10:00Z"', '"2024-01-02T10:00"'),
        pa.string(),
        ["2024-01-02T10:00Z", "2024-01-02T10:00"],
        "1 of 2 points in time have no offset from UTC",
    ),
    (
        ('"2024-01-02T10:00Z"', '"2024-01-02T10:00+02:00"'),
        pa.timestamp("us", "UTC"),
        [datetime.datetime(2024, 1, 2, hour, tzinfo=datetime.UTC) for hour in (10, 8)],
        "1 of 2 points in time have other offsets than UTC",
    ),
]


@pytest.mark.parametrize(("texts", "kind", "values", "said"), CHANGED, ids=[said for *_, said in CHANGED])
def test_what_no_type_holds_is_said_with_the_count_and_the_first_line(
    texts: tuple[str, ...], kind: pa.DataType, values: list[Any], said: str, column
) -> None:
    taken = column(*texts)
    assert taken.table["a"].type == kind
    assert taken.table["a"].to_pylist() == [*values, None]
    (remark,) = taken.remarks
    assert remark.startswith("column 'a': ")
    assert said in remark
    assert "(line 2: " in remark


@pytest.mark.parametrize("parts", [1, 2, 100])
def test_parts_of_the_file_make_no_difference(parts: int, lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not kinds change from one part to the next."""
    monkeypatch.setattr(json_reader, "_FIRST_AT_ONCE", parts)
    monkeypatch.setattr(json_reader, "_MOST_AT_ONCE", parts)
    taken = take(
        lines(
            {"number": 1, "mixed": 1.5, "nested": {"a": [1]}, "list": []},
            {"number": None, "nested": None, "list": None},
            {"number": 2.5, "mixed": "x", "nested": {"b": 2, "a": [2.5, None]}, "list": ["2024-01-02"]},
            {"late": {"a": None}},
            {"number": 3, "mixed": {"x": 1}, "list": ["2024-01-03", None]},
        )
    )
    first, second = datetime.date(2024, 1, 2), datetime.date(2024, 1, 3)
    assert taken.table.to_pylist() == [
        {"number": 1.0, "mixed": "1.5", "nested": {"a": [1.0], "b": None}, "list": [], "late": None},
        {"number": None, "mixed": None, "nested": None, "list": None, "late": None},
        {"number": 2.5, "mixed": "x", "nested": {"a": [2.5, None], "b": 2}, "list": [first], "late": None},
        {"number": None, "mixed": None, "nested": None, "list": None, "late": {"a": None}},
        {"number": 3.0, "mixed": '{"x": 1}', "nested": None, "list": [second, None], "late": None},
    ]
    (remark,) = taken.remarks
    assert "mixed, stays text (JSON): number (1), text (1), object (1) (line 3: 'x')" in remark


@pytest.mark.parametrize(
    ("rows", "expected", "path", "example"),
    [
        ([{"a": {"x": 1, "y": 1}}, {"a": {"x": "t", "y": 2}}], [{"x": "1", "y": 1}, {"x": "t", "y": 2}], "a.x", "'t'"),
        ([{"a": [1, 2]}, {"a": ["x"]}], [["1", "2"], ["x"]], "a[]", "'x'"),
        ([{"a": [{"x": [1]}]}, {"a": [None, {"x": 1.50}]}], [[{"x": "[1]"}], [None, {"x": "1.5"}]], "a[].x", "'1.5'"),
    ],
)
def test_only_what_varies_within_objects_and_lists_becomes_text(
    rows: list[Any], expected: list[Any], path: str, example: str, lines
) -> None:
    taken = take(lines(*rows))
    assert taken.table["a"].to_pylist() == expected
    (remark,) = taken.remarks
    assert remark.startswith(f"column '{path}': mixed, stays text (JSON): ")
    assert f"(line 2: {example})" in remark


def test_objects_without_fields_stay_text(lines) -> None:
    taken = take(lines({"a": {}, "b": 1}, {"a": None, "b": 2}, {"a": {}}))
    assert taken.table["a"].to_pylist() == ["{}", None, "{}"]
    assert "column 'a': objects without fields stay text (line 1: '{}')" in taken.remarks[0]


@pytest.mark.parametrize("name", ["speed km/h", "len (m)", 'a "b"', "a.b", "a[0]", "", "é", "$", "a\tb"])
def test_any_name_is_a_name(name: str, lines) -> None:
    taken = take(lines({name: 1, "id": 1}, {name: "x", "id": 2}))
    assert taken.table.to_pydict() == {name: ["1", "x"], "id": [1, 2]}
    assert len([remark for remark in taken.remarks if "mixed, stays text" in remark]) == 1


def test_names_that_are_easily_taken_for_another_are_said(lines) -> None:
    taken = take(lines({"a": 1, "A": 2, " b": 3}))
    assert taken.table.column_names == ["a", "A", " b"]
    assert len(taken.remarks) == 2


NAMED = [
    (('"12"', "3"), "int64", [12, 3]),
    (("1.50", '"x"'), "text", ["1.50", "x"]),
    (('{"b": [1.50]}', "[]"), "text", ['{"b": [1.50]}', "[]"]),
    (("12.5", "1"), "decimal(5,2)", [Decimal("12.50"), Decimal("1.00")]),
    (("18446744073709551616",), "decimal(38,0)", [Decimal(1 << 64)]),
    (("1", "2"), "float64", [1.0, 2.0]),
    (('"2024-01-02"',), "timestamp", [datetime.datetime(2024, 1, 2)]),
    (('"2024-01-02T10:00Z"',), "text", ["2024-01-02T10:00Z"]),
    (("true", '"no"'), "boolean", [True, False]),
]


@pytest.mark.parametrize(("texts", "kind", "values"), NAMED)
def test_a_column_has_the_type_that_is_named(texts: tuple[str, ...], kind: str, values: list[Any], column) -> None:
    taken = column(*texts, columns={"a": kind})
    assert taken.table["a"].to_pylist() == [*values, None]
    assert taken.remarks == []


def test_words_for_missing_values_become_missing_where_a_type_is_named(column) -> None:
    taken = column('"n/a"', "1", columns={"a": "int64"})
    assert taken.table["a"].to_pylist() == [None, 1, None]
    assert "column 'a': int64; 1 values are words for a missing value and become missing (line 1" in taken.remarks[0]


def test_a_type_that_does_not_hold_a_value_is_refused_with_its_line(lines) -> None:
    path = lines({"a": "1"}, {"a": "x"})
    assert "line 2: column 'a' holds 'x', which does not fit `columns={'a': 'int64'}`" in refusal(
        path, columns={"a": "int64"}
    )
    path = lines({"a": 1}, {"a": [1]})
    assert "line 2: column 'a' holds '[1]'" in refusal(path, columns={"a": "float64"})
    assert "has no column 'b', which is given in `columns`\n  Its columns are a" in refusal(path, columns={"b": "text"})


@pytest.mark.parametrize(
    "rows",
    [
        [{f"c{number}": number} for number in range(5)],
        [{f"c{number}": number for number in range(5)}],
        [{"c": {"d": {f"c{number}": number for number in range(5)}}}] * 2,
    ],
    ids=["a name a line", "all in one line", "nested"],
)
def test_too_many_names_are_refused(rows: list[object], lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing value takes memory for each line and each name."""
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 4)
    path = lines(*rows)
    assert refusal(path).startswith(f"{path}: has 5 columns, more than the limit of 4")


def test_as_many_columns_as_may_be_are_taken(lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 4)
    assert take(lines({"a": {"x": 1, "y": [2]}, "b": [{"z": 1}], "c": "::"}, {})).table.num_columns == 3


def test_empty_lines_are_no_rows(lines) -> None:
    taken = take(lines({"a": 1}, "", "   ", '{"a": 2}\r'))
    assert (taken.facts["input_rows"], taken.table["a"].to_pylist()) == (2, [1, 2])


WRONG = [
    ('{"a": }', "is not JSON: Expecting value"),
    ('{"a": 2} {"a": 3}', "is not JSON: Extra data (column 10)"),
    ('{"a": 2', "is not JSON: Expecting ',' delimiter"),
    ('{"a": "x', "is not JSON: Unterminated string"),
    ("{'a': 2}", "is not JSON: Expecting property name"),
    ('{"a": "\t"}', "is not JSON: Invalid control character"),
    ('{"a": 01}', "is not JSON"),
    ('{"a": 2, "a": 3}', "has the field 'a' twice in one object"),
    ('{"a": 2, "b": [{"c": 1, "c": 1}]}', "has the field 'c' twice in one object"),
    ('{"a": "\\ud800"}', "has an unpaired surrogate"),
    ('{"\\udc00": 1}', "has an unpaired surrogate"),
    ('{"a": ["\\ud83d x"]}', "has an unpaired surrogate"),
    ('{"a": ' + "[" * 70 + "]" * 70 + "}", "is nested more than 60 levels deep"),
    ('{"b": ' + "[" * 700 + "]" * 700 + "}", "is nested"),
    ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "is nested too deeply"),
    ("5", "is JSON, but not an object (given: '5')"),
    ('"text"', "is JSON, but not an object (given: "),
    ("[1]", "is JSON, but not an object (given: "),
]


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_a_line_that_is_not_a_record_is_refused_by_its_number(line: str, said: str, lines) -> None:
    assert f"table.jsonl, line 3: {said}" in refusal(lines({"b": 1}, "", line))


def test_deep_values_of_several_kinds_are_refused_or_text(lines) -> None:
    deep = "[" * 700 + "]" * 700
    assert "line 2: is nested too deeply" in refusal(lines({"a": 1}, f'{{"a": {deep}}}'))
    assert take(lines({"a": 1}, '{"a": ' + "[" * 80 + "]" * 80 + "}")).table["a"][1].as_py() == "[" * 80 + "]" * 80


def test_what_is_not_utf8_is_refused_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_bytes(b'{"a": "x"}\n\n{"a": "\xe9"}\n')
    assert "line 3: byte 0xe9 is not UTF-8" in refusal(tmp_path / "table.json")
    assert take(tmp_path / "table.json", encoding="latin-1").table["a"].to_pylist() == ["x", "é"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_name_the_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "table.json").write_bytes('{"a": "é"}\n{"a": "日"}\n'.encode(encoding))
    taken = take(tmp_path / "table.json")
    assert (taken.table["a"].to_pylist(), taken.understood["encoding"]) == (["é", "日"], encoding)


def test_a_line_of_more_than_a_block_is_refused(lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_stream, "BLOCK_BYTES", 1 << 10)
    assert "line 2: is longer than" in refusal(lines({"a": 1}, {"a": "x" * 5000}))


def test_blocks_divide_lines_where_they_may(lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_stream, "BLOCK_BYTES", 100)
    rows = [{"place": number} for number in range(500)]
    taken = take(lines(*rows), 32)
    assert taken.facts["input_rows"] == 500
    assert taken.table["place"].to_pylist()[-2:] == [498, 499]


def test_the_line_of_a_warning_is_that_of_the_file_in_a_sample_too(lines) -> None:
    taken = take(lines(*({"a": "x" if number == 499 else number} for number in range(500))), 32)
    assert "(line 500: 'x')" in taken.remarks[0]


def test_objects_without_names_are_refused(lines) -> None:
    assert "has only empty objects" in refusal(lines({}, {}))


@pytest.mark.parametrize("ending", packed.ENDINGS)
def test_compressed_json_is_read_as_it_is_uncompressed(ending: str, tmp_path: Path) -> None:
    path = packed.write(b'{"a": 1}\r\n{"a": 2}', tmp_path / f"table.jsonl{ending}")
    assert take(path).table["a"].to_pylist() == [1, 2]
    path = packed.write('[{"a": "é"},\n{"a": "x"}]'.encode("utf-16"), tmp_path / f"table.json{ending}")
    assert take(path).table["a"].to_pylist() == ["é", "x"]
    path = packed.write(b'{"a": {"0": 1}, "b": {"0": 2}}', tmp_path / f"table.JSON{ending}")
    assert "is one JSON object that does not look like one row" in refusal(path)
    path = packed.write(b'{"a": 1}\n' * 99_999, tmp_path / f"cut.ndjson{ending}")
    path.write_bytes(path.read_bytes()[:-30])
    assert f"cannot be unpacked as {ending[1:]}" in refusal(path)


NOON = datetime.datetime(2024, 1, 2, 12, 30, 0, 123_456)
ROWS = [
    {"i": 2**60, "f": 0.1, "s": "00123", "t": NOON, "d": NOON.date(), "b": True, "l": [1, None], "o": {"x": 1.5}},
    {"i": None, "f": 1e300, "s": "", "t": None, "d": None, "b": False, "l": [], "o": {"x": None}},
]


def by_polars(path: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame(ROWS).write_ndjson(path)


def by_duckdb(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.from_arrow(pa.Table.from_pylist(ROWS)).query("rows", f"COPY rows TO '{path}' (FORMAT json)")


def by_pandas(path: Path) -> None:
    frame = pd.DataFrame(ROWS).astype({"i": "Int64"})
    for name in ("t", "d"):
        frame[name] = frame[name].map(lambda value: None if pd.isna(value) else str(value))
    frame.to_json(path, orient="records", lines=True, double_precision=15)


@pytest.mark.parametrize("write", [by_polars, by_duckdb, by_pandas])
def test_what_libraries_write_comes_back(write: Any, tmp_path: Path) -> None:
    write(tmp_path / "table.jsonl")
    taken = take(tmp_path / "table.jsonl")
    assert taken.table.to_pylist() == ROWS
    assert taken.remarks == []
