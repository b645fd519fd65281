"""Tables from hypothesis, written by common programs, and the accepted results of an import.

`python -m tests.data_generator.imported.tables.generated_tables 500` tries 500 tables; with the word `others` appended,
different ones each time.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import hypothesis
import hypothesis.strategies as st
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import xlsxwriter

from data_generator.imported.import_process import REFUSAL
from tests.data_generator.imported.tables.table_files import frames, take

Columns = dict[str, list[Any]]

_WORDS = st.one_of(
    st.sampled_from(
        ["NA", "null", "None", "nan", "inf", "007", "+5", "0x1F", "12E3", "1,5", "1.234,5", "12%", "$5", "31.12.2024"]
    ),
    st.sampled_from(
        ["2024-01-31", "2024-01-31T10:00:00+02:00", "99999999999999999999", "1e400", "true", "-", " x ", "a;b", "a,b"]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"), max_size=8),
)
_INTEGERS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-100, 100))
_FLOATS = st.floats(-1e300, 1e300, allow_nan=False, width=64)
_DATES = st.one_of(st.dates(), st.just(datetime.date(9999, 12, 31)))
_MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59))
_KINDS = (_WORDS, _INTEGERS, _FLOATS, st.booleans(), _DATES, _MOMENTS)
_NAMES = st.one_of(st.text("abcXYZ_ /()'.;é", min_size=1, max_size=6), st.sampled_from(["id", "ID", "2024", "#x"]))


@st.composite
def tables(draw: st.DrawFn) -> Columns:
    """Draw one to four columns of one to eight rows, each of one kind with missing values."""
    names = draw(st.lists(_NAMES, min_size=1, max_size=4, unique_by=lambda name: name.strip().lower()))
    rows = draw(st.integers(1, 8))
    return {
        name: draw(st.lists(st.one_of(draw(st.sampled_from(_KINDS)), st.none()), min_size=rows, max_size=rows))
        for name in names
    }


# --- writers --------------------------------------------------------------------------------------------------------


def arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _frame(columns: Columns) -> pd.DataFrame:
    return arrow(columns).to_pandas(types_mapper=pd.ArrowDtype)


def _by_hand(columns: Columns, path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _json_lines(columns: Columns, path: Path) -> None:
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


def _duckdb(columns: Columns, path: Path, how: str) -> None:
    held = arrow(columns)
    with duckdb.connect() as connection:
        connection.register("held", held)
        connection.execute(f"COPY held TO '{path}' ({how})")


def _openpyxl(columns: Columns, path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        book.active.append(list(row))
    book.save(path)


def _xlsxwriter(columns: Columns, path: Path) -> None:
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        sheet = book.add_worksheet()
        for place, (name, values) in enumerate(columns.items()):
            sheet.write_string(0, place, name)
            for row, value in enumerate(values, start=1):
                sheet.write(row, place, value)


WRITERS: Mapping[str, tuple[str, Callable[[Columns, Path], None]]] = {
    "pandas csv": (".csv", lambda columns, path: _frame(columns).to_csv(path, index=False)),
    "pandas json": (
        ".jsonl",
        lambda columns, path: _frame(columns).to_json(
            path, orient="records", lines=True, date_format="iso", date_unit="us"
        ),
    ),
    "pandas excel": (".xlsx", lambda columns, path: _frame(columns).to_excel(path, index=False)),
    "polars csv": (".csv", lambda columns, path: pl.from_arrow(arrow(columns)).write_csv(path)),
    "polars json": (".jsonl", lambda columns, path: pl.from_arrow(arrow(columns)).write_ndjson(path)),
    "polars parquet": (".parquet", lambda columns, path: pl.from_arrow(arrow(columns)).write_parquet(path)),
    "polars avro": (".avro", lambda columns, path: pl.from_arrow(arrow(columns)).write_avro(path)),
    "duckdb csv": (".csv", lambda columns, path: _duckdb(columns, path, "FORMAT csv, HEADER")),
    "duckdb json": (".json", lambda columns, path: _duckdb(columns, path, "FORMAT json")),
    "duckdb parquet": (".parquet", lambda columns, path: _duckdb(columns, path, "FORMAT parquet")),
    "pyarrow parquet": (".parquet", lambda columns, path: pq.write_table(arrow(columns), path)),
    "pyarrow int96": (
        ".parquet",
        lambda columns, path: pq.write_table(arrow(columns), path, use_deprecated_int96_timestamps=True),
    ),
    "pyarrow orc": (".orc", lambda columns, path: pyarrow.orc.write_table(arrow(columns), path)),
    "openpyxl": (".xlsx", _openpyxl),
    "xlsxwriter": (".xlsx", _xlsxwriter),
    "by hand, csv": (".csv", _by_hand),
    "by hand, json": (".jsonl", _json_lines),
}
"""Writer of a table -> the suffix of the file, and how it is written."""


# --- accepted results -----------------------------------------------------------------------------------------------


def check(columns: Columns, writer: str, folder: Path) -> None:
    """Raise AssertionError if the import of the table has another value than the file without a warning."""
    ending, write = WRITERS[writer]
    path = folder / f"table{ending}"
    try:
        write(columns, path)
    except BaseException as error:
        # What this program cannot write is not tested. polars panics, and its panic is not an Exception.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            hypothesis.reject()
        raise
    *_, (kind, content) = frames(path, 1000)
    if kind == REFUSAL:
        said = json.loads(content)
        assert said["reason"], said
        assert said["step"], said
        return
    taken = take(path)
    # pandas' JSON has ten decimals: dropped digits are not in the file.
    tolerance = 1e-9 if writer == "pandas json" else 1e-15
    text_only = ending in (".csv", ".xlsx")
    found = list(zip(taken.table.column_names, taken.table.columns, strict=True))
    assert len(found) == len(columns), f"{writer}: {len(columns)} columns became {len(found)}"
    for (name, values), (found_name, arrived) in zip(columns.items(), found, strict=True):
        assert found_name == name or not name.strip(), f"{writer}: {name!r} became {found_name!r}"
        warned = any(repr(name)[1:-1] in remark or "header" in remark for remark in taken.remarks)
        # Rows without values at the end of a sheet, and empty lines of a single column, are skipped.
        lost = [row for row in zip(*columns.values(), strict=True) if not any(cell not in (None, "") for cell in row)]
        if len(arrived) != len(values):
            assert len(arrived) >= len(values) - len(lost), f"{writer}: rows are lost"
            continue
        if ending == ".xlsx":
            # A cell is a float64, and writers round integers, and microseconds written as days.
            values = [float(cell) if type(cell) is int and abs(cell) > 1 << 53 else cell for cell in values]
            values = [
                cell.replace(microsecond=cell.microsecond // 1000 * 1000)
                if isinstance(cell, datetime.datetime) and cell.microsecond % 1000 <= 2
                else cell
                for cell in values
            ]
        for before, after in zip(values, arrived.to_pylist(), strict=True):
            assert warned or is_same(before, after, text_only, tolerance), (
                f"{writer}: {name!r}: {before!r} became {after!r}, {taken.remarks}"
            )


def is_same(before: Any, after: Any, text_only: bool, tolerance: float = 1e-15) -> bool:
    """Return whether a value equals the written one, or its text if the file has only text."""
    if before is None or after is None:
        return before is after or (text_only and before in ("", "NA", "null", "None", "nan"))
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after or str(before).lower() == str(after).lower()
    if isinstance(before, float) and isinstance(after, int | float):
        return before == after or math.isclose(before, after, rel_tol=tolerance, abs_tol=1e-10 * (tolerance > 1e-15))
    if isinstance(before, datetime.datetime):
        return _moment(after) == before
    if isinstance(before, datetime.date):
        return _moment(after) == datetime.datetime.combine(before, datetime.time())
    if isinstance(before, str) and not isinstance(after, str):
        return (
            str(after) == before
            or str(after).removesuffix(".0") == before
            or _moment(before) == _moment(after) is not None
        )
    return before == after or str(before) == after


def _moment(value: Any) -> datetime.datetime | None:
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    try:
        return _moment(datetime.datetime.fromisoformat(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def run(examples: int, *, stable: bool) -> None:
    """Try tables until `examples` were imported; if `stable`, the same ones each time. Raises AssertionError."""

    @hypothesis.settings(
        max_examples=examples,
        derandomize=stable,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(tables(), st.sampled_from(sorted(WRITERS)))
    def try_one(columns: Columns, writer: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            check(columns, writer, Path(folder))

    try_one()


if __name__ == "__main__":
    run(int(sys.argv[1]), stable="others" not in sys.argv)
    print(f"{int(sys.argv[1]):,} generated tables arrived as they were written, with a warning, or were refused")
