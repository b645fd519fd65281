"""Excel: the first sheet, whose first row has the names; cells have types of their own, and a column has one.

A sheet is in memory as a whole: it has at most 1,048,576 rows. This module knows no other kind of file.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import python_calamine

from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.table_reading import Found, Reading, Source, as_batches, chosen_blocks
from data_generator.imported.tables.text_columns import MISSING, Misfit, misfit_remarks

_KINDS: Mapping[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "text",
    datetime.date: "date",
    datetime.datetime: "date",
    datetime.time: "time",
    datetime.timedelta: "duration",
}
_EXACT = 1 << 53
"""A cell holds a float64: integers are exact below."""


def read(source: Source) -> Reading:
    """The sample of the first sheet. Raises Refused."""
    source.progress.at(source.path)
    rows = _cells(source)
    if not rows:
        raise Refused("holds no rows in its first sheet", "name a file with a table in it", source.path)
    names = table_types.named([_text(value) or "" for value in rows.pop(0)])
    yield len(rows)
    blocks = chosen_blocks(len(rows), source.rows)
    chosen = [row for block in blocks for row in rows[block.start : block.end]]
    misfits: list[Misfit] = []
    columns = [_column(name, [row[place] for row in chosen], misfits) for place, name in enumerate(names)]
    table = pa.table(columns, names=names)
    schema = table_types.kept_schema(table.schema)

    def lines_of(places: Sequence[int]) -> dict[int, int]:
        # Behind the header, and counted from 1, as the program shows it.
        return {place: sampling.row_at(blocks, place) + 2 for place in places}

    remarks = misfit_remarks(misfits, lines_of, "row")
    return Found(len(rows), blocks, schema, as_batches(table.cast(schema)), remarks)


def _cells(source: Source) -> list[list[Any]]:
    """The rows of the first sheet, without those at its end and those columns at its right that are empty."""
    workbook = python_calamine.CalamineWorkbook.from_filelike(source.stream)
    if not workbook.sheet_names:
        raise Refused("holds no sheet", "name a file with a table in it", source.path)
    rows = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    while rows and all(value == "" for value in rows[-1]):
        rows.pop()
    width = max((place for row in rows for place, value in enumerate(row, start=1) if value != ""), default=0)
    return [row[:width] for row in rows]


def _column(name: str, cells: Sequence[Any], misfits: list[Misfit]) -> pa.Array:
    values = [None if isinstance(cell, str) and cell in MISSING else cell for cell in cells]
    kinds = Counter(_KINDS[type(value)] for value in values if value is not None)
    if len(kinds) > 1:
        most = kinds.most_common(1)[0][0]
        place = next(at for at, value in enumerate(values) if value is not None and _KINDS[type(value)] != most)
        misfits.append(Misfit(name, place, str(values[place]), most))
        return pa.array(map(_text, values), pa.string())
    (kind,) = kinds or ("text",)
    if not kinds:
        return pa.nulls(len(values))
    if kind == "number":
        return _numbers(values)
    if kind == "date":
        return _dates(values)
    return pa.array(values, {"time": pa.time64("us"), "duration": pa.duration("us")}.get(kind))


def _numbers(values: Sequence[Any]) -> pa.Array:
    """Whole numbers are integers, as pandas reads them."""
    numbers = pa.array([None if value is None else float(value) for value in values], pa.float64())
    is_whole = all(value is None or (float(value).is_integer() and abs(value) < _EXACT) for value in values)
    return numbers.cast(pa.int64()) if is_whole else numbers


def _dates(values: Sequence[Any]) -> pa.Array:
    if all(value is None or type(value) is datetime.date for value in values):
        return pa.array(values, pa.date32())
    midnight = datetime.time()
    times = [datetime.datetime.combine(value, midnight) if type(value) is datetime.date else value for value in values]
    return pa.array(times, pa.timestamp("us"))


def _text(value: Any) -> str | None:
    """A cell as text: a whole number without its '.0'."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None if value is None else str(value)
