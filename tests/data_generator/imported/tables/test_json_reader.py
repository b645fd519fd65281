"""JSON Lines: types of all lines, kinds that mix become text, and the file's own lines in what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from data_generator.imported.tables import json_reader, table_types
from tests.data_generator.imported.tables.table_files import refusal, take


@pytest.fixture
def lines(tmp_path: Path):
    def make(*rows: object) -> Path:
        path = tmp_path / "table.jsonl"
        path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        return path

    return make


def test_types_are_those_that_all_lines_have(lines) -> None:
    made = take(lines({"a": 1, "b": "2024-01-02 10:00:00"}, {"a": 0.5, "c": True}, {"a": None})).table
    assert [str(column.type) for column in made.schema] == ["double", "timestamp[us]", "bool"]
    assert made.to_pylist()[2] == {"a": None, "b": None, "c": None}


def test_nested_values_become_lists_and_structs(lines) -> None:
    made = take(lines({"a": [1, 2], "b": {"x": 1, "y": ["z"]}}, {"a": [], "b": {"x": None, "y": None}})).table
    assert made.schema.field("a").type == pa.list_(pa.int64())
    assert pa.types.is_struct(made.schema.field("b").type)
    assert made.to_pylist()[0] == {"a": [1, 2], "b": {"x": 1, "y": ["z"]}}


@pytest.mark.parametrize(
    "rows",
    [
        [{f"c{number}": number} for number in range(5)],
        [{f"c{number}": number for number in range(5)}],
        [{"c0": 1}, {"c0": "text", "c1": 1}, "no: JSON", {"c2": 1, "c3": 1, "c4": [1]}],
    ],
    ids=["a name a line", "all in one line", "lines that are not parsed together"],
)
def test_too_many_names_are_refused_before_the_lines_are_parsed_together(
    rows: list[object], lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lines lack is filled in, in memory, for each line and each name."""
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 4)
    monkeypatch.setattr(json_reader, "_LINES_AT_ONCE", 2)
    monkeypatch.setattr(json_reader, "_parsed", lambda *_: pytest.fail("parsed"))
    path = lines(*rows)
    assert refusal(path).startswith(f"{path}: has 5 columns, and at most 4")


def test_colons_in_values_are_no_columns(lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_types, "MOST_COLUMNS", 2)
    assert take(lines({"a": "10:00:00", "b": "::"}, {"a": ":", "b": None})).table.num_columns == 2


def test_empty_lines_are_no_rows(lines) -> None:
    taken = take(lines({"a": 1}, "", "   ", {"a": 2}))
    assert (taken.facts["input_rows"], taken.table["a"].to_pylist()) == (2, [1, 2])


def test_a_column_of_several_kinds_stays_text_and_the_line_is_told(lines) -> None:
    taken = take(lines({"a": 1, "b": 1}, "", {"a": "two", "b": 2}, {"a": [3], "b": 3}))
    assert taken.table["a"].to_pylist() == ["1", "two", "[3]"]
    assert taken.table["b"].to_pylist() == [1, 2, 3]
    (remark,) = taken.remarks
    assert "column 'a' is mixed and stays text: line 3 holds" in remark
    assert "which is no number\n" in remark


def test_several_columns_of_several_kinds_stay_text(lines) -> None:
    taken = take(lines({"a": 1, "b": True}, {"a": "x", "b": {"c": 1}}))
    assert taken.table.to_pylist() == [{"a": "1", "b": "true"}, {"a": "x", "b": '{"c": 1}'}]
    assert len(taken.remarks) == 2


def test_kinds_that_mix_within_a_list_make_the_column_text(lines) -> None:
    made = take(lines({"a": [1, 2]}, {"a": ["x"]})).table
    assert made["a"].to_pylist() == ["[1, 2]", '["x"]']


def test_a_line_that_is_no_json_is_told(lines) -> None:
    assert "table.jsonl, line 3: is no JSON: Expecting" in refusal(lines({"a": 1}, "", '{"a": }'))


@pytest.mark.parametrize("line", ["5", '"text"', "[1]"])
def test_a_line_that_is_no_object_is_told(line: str, lines) -> None:
    assert "line 2: is JSON, but no object with names" in refusal(lines({"a": 1}, line))


def test_an_array_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('\n [{"a": 1},\n {"a": 2}]')
    assert "begins with '[': it is one JSON array" in refusal(tmp_path / "table.json")


def test_objects_over_several_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('{\n  "a": 1\n}\n')
    assert "line 1: is no JSON" in refusal(tmp_path / "table.json")


def test_two_objects_in_a_line_are_told(lines) -> None:
    assert "line 2: is no JSON: Extra data (column 10)" in refusal(lines({"a": 1}, '{"a": 2} {"a": 3}'))


def test_what_is_no_utf8_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_bytes(b'{"a": "x"}\n\n{"a": "\xe9"}\n')
    assert "line 3: byte 0xe9 is no UTF-8" in refusal(tmp_path / "table.json")


def test_a_line_of_more_than_a_block_is_told(lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "BLOCK_BYTES", 1 << 10)
    assert "line 2: is longer than" in refusal(lines({"a": 1}, {"a": "x" * 5000}))


def test_blocks_divide_lines_where_they_may(lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "BLOCK_BYTES", 100)
    rows = [{"place": number} for number in range(500)]
    taken = take(lines(*rows), 32)
    assert taken.facts["input_rows"] == 500
    assert taken.table["place"].to_pylist()[-2:] == [498, 499]


def test_a_line_that_is_nested_without_end_is_refused(lines) -> None:
    said = refusal(lines({"a": 1}, '{"a":' + "[" * 200_000 + "]" * 200_000 + "}"))
    assert "table.jsonl" in said


def test_objects_without_names_are_refused(lines) -> None:
    assert "holds objects without names" in refusal(lines({}, {}))


def test_a_name_that_stands_twice_in_an_object_is_told_by_its_line(lines) -> None:
    said = refusal(lines({"a": 1}, "", '{"a": 2, "a": 3}'))
    assert "line 3: cannot be read as JSON Lines: JSON parse error: Column(/a) was specified twice\n" in said
