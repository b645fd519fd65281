"""JSON other than one object per line: arrays and objects over several lines are read; other shapes are refused with a
command that converts them to rows."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from data_generator.imported import byte_stream
from data_generator.imported.tables.json_lines import records
from tests.data_generator.imported.tables.table_files import refusal, take

ROWS = [{"id": 1, "x": 0.1, "s": "00123"}, {"id": 2, "x": None, "s": "b, [{"}, {"id": 3, "x": -2.5, "s": 'c"}'}]
FRAME = pd.DataFrame(ROWS)


@pytest.mark.parametrize("block_bytes", [8 << 20, 1, 7, 50])
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "\n [\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n\n",
        FRAME.to_json(orient="records"),
        "\n".join(json.dumps(row, indent=1) for row in ROWS),
        "".join(json.dumps(row, indent=1) for row in ROWS) + "\r\n",
    ],
    ids=["array", "indented array", "array of lines", "pandas' records", "indented objects", "without a break"],
)
def test_arrays_and_objects_over_several_lines_are_read(
    text: str, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    if block_bytes < 100:
        # No record is refused for its length, however short the blocks are.
        monkeypatch.setattr(records, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(records, "MOST_BYTES", 1000)
    taken = take(path)
    assert taken.table.to_pylist() == ROWS
    assert taken.understood["records"] in ("one array of objects", "objects over several lines")


def test_of_a_large_array_a_sample_is_read_and_lines_are_those_of_the_file(tmp_path: Path) -> None:
    rows = [{"place": number if number < 499 else "x"} for number in range(500)]
    (tmp_path / "table.json").write_text(json.dumps(rows, indent=1))
    taken = take(tmp_path / "table.json", 32)
    assert taken.facts["input_rows"] == 500
    assert taken.table["place"].to_pylist()[-2:] == ["498", "x"]
    # '[' and 499 records of three lines precede it.
    assert f"(line {2 + 3 * 499:,}: 'x')" in taken.remarks[0]


WRONG = [
    ('[{"a": 1}', "line 1: ends before ']' closes its array"),
    ('[{"a": 1},\n', "line 2: ends before ']' closes its array"),
    ('[{"a": 1},\n{"a": 2', "line 2: begins an object that never ends"),
    ('[{"a": 1},]', "line 1: is not JSON: Expecting value"),
    ('[{"a": 1}\n{"a": 2}]', "line 2: is not JSON: a comma is missing"),
    ('[{"a": 1}]\n{}', "line 2: has content after its array"),
    ('[{"a": 1},\n5]', "line 2: is JSON, but not an object"),
    ('[{"a": 1},\n{"a": }]', "line 2: is not JSON: Expecting value"),
    ('[{"a": 1, "a": 2}]', "line 1: has the field 'a' twice"),
    ("[ ]", "has no rows"),
    ('{\n"a": 1\n}\n{\n"a": ', "line 4: begins an object that never ends"),
    ('{\n"a": 1\n}\n{\n"a" 2}', "line 5: is not JSON: Expecting ':' delimiter"),
    ('{\n"a": 1\n},\n{"a": 2}', "line 3: is not JSON: Expecting value"),
    ('{\n"a": 1\n', "line 1: is not JSON"),
    ('[{"a":\n' + "[" * 100_000, "line 1: begins an object that is nested too deeply"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_broken_is_refused_by_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text(text)
    assert said in refusal(tmp_path / "table.json")


def test_bytes_that_are_not_utf8_are_refused_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_bytes(b'[{"a": 1},\n{"a": "\xe9"}]')
    assert "line 2: byte 0xe9 is not UTF-8" in refusal(tmp_path / "table.json")


def test_an_object_of_more_than_a_block_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(records, "MOST_BYTES", 1 << 10)
    (tmp_path / "table.json").write_text(json.dumps([{"a": 1}, {"a": "x" * 5000}], indent=1))
    assert "line 5: begins an object of more than" in refusal(tmp_path / "table.json")


KEYED = FRAME.set_index("s")
WITHOUT_KEY = [{"id": row["id"], "x": row["x"]} for row in ROWS]
WITH_KEY = [{"key": row["s"], **rest} for row, rest in zip(ROWS, WITHOUT_KEY, strict=True)]
VALUES = [{"c0": row["id"], "c1": row["x"], "c2": row["s"]} for row in ROWS]
FEATURES = [{"type": "Feature", "properties": {"a": number}, "geometry": None} for number in range(2)]
DOCUMENTS = [
    ("columns", FRAME.to_json(), "an object for each column", ROWS),
    ("columns with keys", KEYED.to_json(), "an object for each column", WITH_KEY),
    ("index", FRAME.to_json(orient="index"), "an object for each row", ROWS),
    ("split", FRAME.to_json(orient="split"), "orient='split'", ROWS),
    ("table", FRAME.to_json(orient="table"), "orient='table'", [{"index": at, **row} for at, row in enumerate(ROWS)]),
    ("values", FRAME.to_json(orient="values"), "orient='values'", VALUES),
    ("arrays a line", "\n".join(json.dumps(list(row.values())) for row in ROWS), "an array in each line", VALUES),
    ("scalars", "[1, 2]", "values, not of objects", [{"value": 1}, {"value": 2}]),
    ("an answer", json.dumps({"data": ROWS, "next": None}), "its rows are in 'data'", ROWS),
    ("a name to quote", json.dumps({'it\'s "all"': ROWS}), "its rows are in ", ROWS),
    ("GeoJSON", json.dumps({"type": "FeatureCollection", "features": FEATURES}), "GeoJSON", FEATURES),
    ("lists", json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}), "a list of values for each", ROWS),
    ("one row", json.dumps({"a": 1, "b": {"c": 2}}), "some of its fields are", [{"a": 1, "b": {"c": 2}}]),
]


@pytest.mark.parametrize("indent", [None, 1], ids=["", "indented"])
@pytest.mark.parametrize(
    ("text", "said", "rows"), [case[1:] for case in DOCUMENTS], ids=[case[0] for case in DOCUMENTS]
)
def test_shapes_other_than_rows_are_refused_with_a_command_that_makes_rows(
    text: str, said: str, rows: list[Any], indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "table.json"
    is_one = "\n" not in text
    path.write_text(json.dumps(json.loads(text), indent=indent) if is_one else text)
    told = refusal(path)
    assert said in told
    command = told.partition("\n  ")[2].split("; if each is a row: ")[0].partition(": ")[2]
    assert _made(command, path) == rows


def test_rows_by_keys_have_a_command_too(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(KEYED.to_json(orient="index"))
    assert _made(refusal(path).split("; if each is a row: ")[1], path) == WITH_KEY


def _made(command: str, path: Path) -> list[Any]:
    """Return the rows after running the command. A shell splits its words; Python runs in this process, because each
    import of pandas takes half a second."""
    program, *_ = shlex.split(command)
    if program == "jq" and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    command = command.replace("FILE", path.name)
    if program == "python":
        command = f"printf '%s\\0' {command}"
    done = subprocess.run(command, shell=True, check=True, cwd=path.parent, capture_output=True, text=True)
    if program == "python":
        _, flag, script = done.stdout.removesuffix("\0").split("\0")
        assert flag == "-c"
        with contextlib.chdir(path.parent):
            exec(compile(script, "command", "exec"), {"__name__": "__main__"})
    (made,) = path.parent.glob("NEW.*")
    return take(made).table.to_pylist()


@pytest.mark.parametrize("size", [10, 7_000], ids=["small", "longer than a line may be"])
@pytest.mark.parametrize("orient", ["columns", "index", "split", "table"])
def test_large_documents_are_known_by_how_they_begin(
    size: int, orient: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_stream, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(records, "MOST_BYTES", 1 << 16)
    frame = pd.DataFrame({"a": range(size), "b": [f"text {number}" for number in range(size)]})
    frame.to_json(tmp_path / "table.json", orient=orient)
    assert "is one JSON object that does not look like one row" in refusal(tmp_path / "table.json")


@pytest.mark.parametrize("row", [{"a": 1, "b": "x"}, {"a": 1, "b": [1], "c": {"d": 1}}, {"a": [{"b": 1}]}])
def test_one_line_of_json_lines_is_one_row(row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "table.jsonl").write_text(json.dumps(row))
    assert take(tmp_path / "table.jsonl").table.to_pylist() == [row]
    (tmp_path / "table.json").write_text(json.dumps({"a": 1, "b": None}))
    assert take(tmp_path / "table.json").table.to_pylist() == [{"a": 1, "b": None}]
