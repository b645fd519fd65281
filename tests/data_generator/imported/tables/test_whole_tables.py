"""All rows of a file, with the types of a small sample: every value is as in the file, or the error names its line."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from data_generator.imported import byte_stream
from data_generator.imported.tables import csv_reader, fixed_types, table_reading
from tests.data_generator.imported.tables.table_files import KINDS, numbered, refusal, take, write

ROWS = 4_000
LATE = 2_345
"""A row that is in no block of the sample."""


@pytest.fixture(autouse=True)
def _types_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reading, "TYPE_ROWS", 64)
    for module in (csv_reader, byte_stream):
        monkeypatch.setattr(module, "BLOCK_BYTES", 1 << 14)


def csv(tmp_path: Path, values: list[str], name: str = "a") -> Path:
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["n," + name, *(f"{row},{value}" for row, value in enumerate(values))]) + "\n")
    return path


def lines(tmp_path: Path, values: list[object]) -> Path:
    path = tmp_path / "table.jsonl"
    path.write_text("".join(json.dumps({"n": row, "a": value}) + "\n" for row, value in enumerate(values)))
    return path


@pytest.mark.parametrize("suffix", KINDS)
def test_all_rows_come_in_order(suffix: str, tmp_path: Path) -> None:
    table = numbered(ROWS)
    taken = take(write(table, tmp_path / f"table.{suffix}"), None)
    assert taken.table.equals(table)
    assert (taken.facts["input_rows"], taken.facts["rows"], taken.facts["blocks"]) == (ROWS, ROWS, 1)


VALUES: dict[str, list[str]] = {
    "integers": [str(row) for row in range(ROWS)],
    "floats, some of them whole": [f"{row / 8:g}" for row in range(ROWS)],
    "booleans": ["true" if row % 3 else "False" for row in range(ROWS)],
    "dates": [str(datetime.date(2020, 1, 1) + datetime.timedelta(row)) for row in range(ROWS)],
    "timestamps, a block of them at midnight": [
        f"2024-01-02 {'00:00:00' if row > 1000 else f'10:{row % 60:02}:00'}" for row in range(ROWS)
    ],
    "times": [f"{row % 24:02}:{row % 60:02}:00" for row in range(ROWS)],
    "text, a block of which are numbers": [str(row) if row > 1000 else f"word {row}" for row in range(ROWS)],
    "missing in whole blocks": ["" if 1000 < row < 3000 else str(row) for row in range(ROWS)],
    "words for missing": ["NA" if row % 5 == 0 else str(row / 4) for row in range(ROWS)],
    "leading zeros": [f"{row:05}" for row in range(ROWS)],
    "19 digits": [str(1_234_567_890_123_456_000 + row) for row in range(ROWS)],
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_are_those_that_the_types_of_all_rows_give(values: list[str], tmp_path: Path) -> None:
    path = csv(tmp_path, values)
    whole = take(path).table
    taken = take(path, None).table
    assert taken.schema == whole.schema
    assert taken.equals(whole)


def test_many_columns_are_read_as_dictionaries_and_give_the_same(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(csv_reader._FEW_COLUMNS + 1)]
    path = tmp_path / "wide.csv"
    rows = [",".join(str((row * place) % 97 / 4) for place in range(len(names))) for row in range(500)]
    path.write_text("\n".join([",".join(names), *rows]) + "\n")
    assert take(path, None).table.equals(take(path).table)


UNFIT: dict[str, tuple[str, str, str]] = {
    "a fraction among integers": ("1", "1.5", "int64"),
    "a word among floats": ("1.5", "unknown", "double"),
    "a number among booleans": ("true", "1", "bool"),
    "a time among dates": ("2024-01-02", "2024-01-02 10:00:00", "date32[day]"),
    "a zone among timestamps": ("2024-01-02 10:00:00", "2024-01-02T10:00:00Z", "timestamp[us]"),
    "too many digits among floats": ("1.5", "9007199254740993", "double"),
    "a leading zero, which needs a warning": ("1", "007", "int64"),
    "an integer beyond int64": ("1", "9223372036854775808", "int64"),
    "a word for missing among text": ("word", "NA", "text without words for a missing value"),
    "a word for missing among codes": ("9" * 20, "None", "text without words for a missing value"),
    "a word for missing among numbers with decimal commas": ('"1,5"', "NA", "text without words for a missing value"),
    "a word for missing among empty values": ("", "null", "double"),
}


@pytest.mark.parametrize(("usual", "late", "kind"), UNFIT.values(), ids=UNFIT)
def test_a_late_value_that_does_not_fit_is_refused_with_its_line(
    usual: str, late: str, kind: str, tmp_path: Path
) -> None:
    path = csv(tmp_path, [late if row == LATE else usual for row in range(ROWS)])
    text = refusal(path, None)
    assert f"line {LATE + 2:,}: column 'a' holds {late!r}, but is {kind} in the" in text
    assert "`columns={'a': 'text'}` to read all of its values as text" in text
    assert take(path, None, columns={"a": "text"}).table["a"][LATE].as_py() == late


def test_late_empty_values_and_words_that_the_sample_has_are_missing(tmp_path: Path) -> None:
    values = ["" if row == LATE else "NA" if row in (0, LATE + 1) else "word" for row in range(ROWS)]
    taken = take(csv(tmp_path, values), None)
    assert taken.table["a"].to_pylist() == [None if value in ("", "NA") else value for value in values]
    assert taken.facts["changed"] == ["a"]
    assert any("a word for missing" in remark for remark in taken.remarks)


def test_a_part_that_has_only_words_for_missing_is_missing(tmp_path: Path) -> None:
    values = ["NA" if 100 < row < 3_900 else str(row) for row in range(ROWS)]
    taken = take(csv(tmp_path, values), None).table["a"]
    assert taken.to_pylist() == [None if value == "NA" else int(value) for value in values]


def test_the_line_is_right_in_a_file_whose_values_have_line_breaks(tmp_path: Path) -> None:
    values = ['"two\nlines"' if row < LATE else "word" for row in range(ROWS)]
    path = tmp_path / "table.csv"
    path.write_text("a,n\n" + "".join(f"{value},{'x' if row == LATE else row}\n" for row, value in enumerate(values)))
    assert f"line {2 * LATE + 2:,}: column 'n' holds 'x'" in refusal(path, None)


def test_a_type_that_the_user_names_is_checked_in_all_rows(tmp_path: Path) -> None:
    path = csv(tmp_path, ["many" if row == LATE else "1,000" for row in range(ROWS)])
    path.write_text(path.read_text().replace("1,000", '"1,000"'))
    assert f"line {LATE + 2:,}: column 'a' holds 'many', which does not fit" in refusal(
        path, None, columns={"a": "int64"}
    )


def test_categories_of_all_rows_are_kept(tmp_path: Path) -> None:
    values = ["late" if row == LATE else "usual" for row in range(ROWS)]
    taken = take(csv(tmp_path, values), None, columns={"a": "category"}).table
    assert taken["a"].to_pylist() == values
    assert taken.schema.field("a").type == pa.dictionary(pa.int32(), pa.string())


JSON_VALUES: dict[str, list[object]] = {
    "numbers, a block of them whole": [row if row > 1000 else row / 8 for row in range(ROWS)],
    "text that looks like a time in a block": ["2024-01-02 10:00:00" if row > 1000 else "word" for row in range(ROWS)],
    "objects with fields left out in a block": [
        {"x": row} if row > 1000 else {"x": 1, "y": ["z"]} for row in range(ROWS)
    ],
    "lists, empty in a block": [[] if row > 1000 else [row, None] for row in range(ROWS)],
    "mixed in the first rows": [row if row % 2 else str(row) for row in range(ROWS)],
    "null in a block": [None if row > 1000 else {"x": 0.5} for row in range(ROWS)],
}


@pytest.mark.parametrize("values", JSON_VALUES.values(), ids=JSON_VALUES)
def test_json_values_are_those_that_the_types_of_all_rows_give(values: list[object], tmp_path: Path) -> None:
    path = lines(tmp_path, values)
    assert take(path, None).table.equals(take(path).table)


@pytest.mark.parametrize(
    ("usual", "late", "said"),
    [
        (1, 0.5, "holds '0.5', but is int64 in the 64 sampled rows"),
        (0.5, "x", "holds 'x', but is double in the 64 sampled rows"),
        ([1], ["x"], """holds '["x"]', but is list<item: int64> in the 64 sampled rows"""),
        ({"x": 1}, {"x": 1, "new": 2}, """holds '{"x": 1, "new": 2}', but is struct<x: int64> in the 64 sampled"""),
        (True, {"x": 1}, """holds '{"x": 1}', but is bool in the 64 sampled rows"""),
    ],
)
def test_a_late_json_value_that_does_not_fit_is_refused_with_its_line(
    usual: object, late: object, said: str, tmp_path: Path
) -> None:
    path = lines(tmp_path, [late if row == LATE else usual for row in range(ROWS)])
    assert f"line {LATE + 1:,}: column 'a' {said}" in refusal(path, None)
    as_text = take(path, None, columns={"a": "text"}).table["a"]
    assert json.loads(as_text[LATE].as_py()) == late if late != "x" else as_text[LATE].as_py() == "x"


def test_a_late_new_field_is_refused_unless_its_type_is_named(tmp_path: Path) -> None:
    path = lines(tmp_path, [1] * ROWS)
    text = path.read_text().splitlines()
    text[LATE] = '{"n": 1, "a": 1, "new": 7}'
    path.write_text("\n".join(text))
    assert f"line {LATE + 1:,}: column 'new' holds '7', but does not occur in the 64 sampled" in refusal(path, None)
    taken = take(path, None, columns={"new": "int64"}).table["new"]
    assert (taken[LATE].as_py(), taken.null_count) == (7, ROWS - 1)
    assert "has no column 'nwe'" in refusal(path, None, columns={"new": "int64", "nwe": "text"})


def test_the_sample_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table_reading, "TYPE_ROWS", ROWS)
    monkeypatch.setattr(table_reading, "TYPE_BYTES", 2_000)
    path = csv(tmp_path, ["x" * 50 if row == LATE else "1" * 18 for row in range(ROWS)])
    assert "but is int64 in the " in refusal(path, None)


def test_integers_that_a_float_does_not_hold_do_not_fit() -> None:
    exact = pa.array([1 << 53])
    assert fixed_types.fitted(exact, pa.float64()).to_pylist() == [float(1 << 53)]
    with pytest.raises(fixed_types.Unfit):
        fixed_types.fitted(pa.array([(1 << 53) + 1]), pa.float64())


def test_the_first_value_that_does_not_fit_is_found() -> None:
    for count in (1, 2, 7, 64):
        for bad in range(count):
            assert fixed_types.first_unfit(count, lambda number, bad=bad: number <= bad) == bad


def test_lists_and_structs_keep_their_missing_values() -> None:
    kind = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))
    found = pa.array([[{"x": 1}, None], None, []], pa.list_(pa.struct([("x", pa.int64())])))
    assert fixed_types.fitted(found, kind).to_pylist() == [[{"x": 1.0, "y": None}, None], None, []]
    assert np.array_equal(fixed_types.fitted(found, kind).is_null(), [False, True, False])
