"""Read Excel workbooks. The first row has the column names.

Each cell has a type, and a column gets the type of its cells. A column whose cells have several types becomes text. A
whole sheet, which has at most 1,048,576 rows, is in memory. This module does not depend on other kinds of files.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from data_generator.imported.refusal import printable
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.excel import odd_cells, sheets
from data_generator.imported.tables.excel.odd_cells import (
    DIGITS,
    EARLY,
    ERROR,
    FINE,
    FORMULA,
    HUGE,
    LEAP,
    STALE,
    letters,
)
from data_generator.imported.tables.excel.sheets import Sheet
from data_generator.imported.tables.sampling import Block
from data_generator.imported.tables.table_reading import Found, Reading, TableFile, as_batches, chosen_blocks
from data_generator.imported.tables.text_types.column_notes import Note, changed_columns, column_option
from data_generator.imported.tables.text_types.conversion import NotOfType, check_columns, converted, not_taken
from data_generator.imported.tables.text_types.distinct_texts import MISSING, missing_text

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
"""Integers whose absolute value is below this are exact, because cells store numbers as float64."""
_WORDS = frozenset(MISSING) - {""}

_SAVED = "open the file in Excel or LibreOffice, save it, and read it again"
_ODD = {
    ERROR: ("errors in {} cells are missing values", "repair the formulas, if a value is meant"),
    FORMULA: ("formulas without a stored value in {} cells are missing values", _SAVED),
    STALE: ("formulas in {} cells have values that the file requests to compute again when it is opened", _SAVED),
    FINE: ("times with fractions of a millisecond in {} cells are rounded to milliseconds", "store them as text"),
    EARLY: ("dates before 1900 in {} cells, which Excel does not support, are read as midnight", "store them as text"),
    LEAP: ("29 February 1900, a day that exists only in Excel, in {} cells is read as the 28th", "repair them"),
    HUGE: ("numbers beyond the range of a cell in {} cells are infinite", "store them as text"),
    DIGITS: ("integers with more digits than a cell holds in {} cells are rounded", "store them as text"),
}
"""Problem that cells have -> (remark for the user, next step)."""


@dataclass(frozen=True)
class _Table:
    source: TableFile
    sheet: Sheet
    names: list[str]
    blocks: tuple[Block, ...]
    rows: list[list[Any]]
    missing: Counter[str] = field(default_factory=Counter)

    @property
    def first_row(self) -> int:
        """Return the index of the first row after the header. Rows of the sheet are counted from 0."""
        return self.sheet.area.row + self.source.options.header

    def cell(self, column: int, place: int) -> str:
        """Return the name of a cell, such as 'B3'. `place` is the index of the cell's row in the sample."""
        return (
            f"cell {letters(self.sheet.area.column + column)}{self.first_row + sampling.row_at(self.blocks, place) + 1}"
        )


def read(source: TableFile) -> Reading:
    """Return the sample of a sheet. Raises Refused if the workbook has no suitable sheet, or if a column cannot be
    converted."""
    source.progress.at(source.path)
    workbook = sheets.opened(source)
    sheet = yield from sheets.chosen(workbook, source)
    workbook.close()
    header, rows = (sheet.area.cells[0], sheet.area.cells[1:]) if source.options.header else (None, sheet.area.cells)
    names = _names(header, len(rows[0]))
    check_columns(source.options.columns, names)
    yield len(rows)
    blocks = chosen_blocks(len(rows), source.rows)
    chosen = [row for block in blocks for row in rows[block.start : block.end]]
    table = _Table(source, sheet, names, blocks, chosen)
    remarks = [*sheet.remarks(), *_header_remarks(table, header), *_row_remarks(table)]
    columns: list[pa.Array] = []
    changed: list[str] = []
    for place in range(len(names)):
        array, notes = _column(table, place)
        changed += changed_columns(notes)
        columns.append(array)
        remarks += [note.remark(table.cell(place, note.place)) for note in notes]
        yield len(rows)
    first = sheet.area.column
    moments = odd_cells.Moments(
        [first + place for place, array in enumerate(columns) if pt.is_temporal(array.type)],
        [first + place for place, array in enumerate(columns) if pt.is_date(array.type) or pt.is_timestamp(array.type)],
    )
    odd = yield from odd_cells.found(source.stream, sheet.name, table.first_row, moments, len(rows))
    for place in range(len(names)):
        remarks += _odd_remarks(table, place, odd)
    made = pa.table(columns, names=names)
    schema = table_types.kept_schema(made.schema)
    understood = {
        "sheet": sheet.shown(),
        "header": f"row {sheet.area.row + 1}" if header is not None else "none: columns are called '0', '1', ..",
        "missing values": missing_text(table.missing),
    }
    if source.path.lower().endswith((".xls", ".xlsb", ".ods")) and "" in table.missing:
        understood["missing values"] += "; errors and formulas without a value look like empty cells in this format"
    return Found(
        len(rows),
        blocks,
        schema,
        as_batches(made.cast(schema)),
        [*table_types.name_remarks(names), *remarks],
        understood,
        changed,
    )


def _names(header: Sequence[Any] | None, width: int) -> list[str]:
    if header is None:
        return [str(place) for place in range(width)]
    return table_types.named([_text(value) or "" for value in header])


def _header_remarks(table: _Table, header: Sequence[Any] | None) -> Iterator[str]:
    if header is None:
        return
    number = table.sheet.area.row + 1
    unnamed = header.count("")
    first = next(place for place, value in enumerate(header) if value != "")
    shown = printable(_text(header[first]))[:60]
    where = f"cell {letters(table.sheet.area.column + first)}{number}: {shown!r}"
    if unnamed:
        yield (
            f"row {number} is used as the column names and has none for {unnamed:,} of {len(header):,} "
            f"({where})\nif it is a title, remove it and the rows above the names"
        )
    elif not any(isinstance(value, str) for value in header):
        yield (
            f"row {number} is used as the column names, but has values other than text ({where})\n"
            "--no-header reads it as the first row"
        )


def _row_remarks(table: _Table) -> Iterator[str]:
    empty = [place for place, row in enumerate(table.rows) if all(cell == "" for cell in row)]
    if empty:
        row = table.first_row + sampling.row_at(table.blocks, empty[0]) + 1
        yield (
            f"{len(empty):,} empty rows are rows without values (the first: row {row:,})\n"
            "remove them from the file if they are not intended"
        )
    merged = sum(last >= table.first_row for _, last in table.sheet.area.merged)
    if merged:
        row = next(first for first, last in table.sheet.area.merged if last >= table.first_row)
        yield (
            f"{merged:,} ranges of merged cells: only the first cell of each has the value (the first: row {row + 1:,})"
            "\nunmerge them and fill in the values if all rows should have them"
        )


def _odd_remarks(table: _Table, place: int, odd: odd_cells.Found) -> Iterator[str]:
    for what, (said, step) in _ODD.items():
        cells = odd.get((table.sheet.area.column + place, what))
        if cells is not None:
            note = Note(table.names[place], 0, cells.text, said.format(f"{cells.count:,}"), step)
            yield note.remark(f"the first: cell {letters(table.sheet.area.column + place)}{cells.row + 1}")


def _column(table: _Table, place: int) -> tuple[pa.Array, Sequence[Note]]:
    """Return the column and warnings.

    The type is the one that the user names. Without it, the type is that of all cells, or text if they differ. Raises
    Refused for a value that does not fit the type that the user names.
    """
    name, cells = table.names[place], [row[place] for row in table.rows]
    kind = table.source.options.columns.get(name)
    if kind is not None:
        return _as_named(table, place, cells, kind), ()
    values = [None if cell == "" or (isinstance(cell, str) and cell in _WORDS) else cell for cell in cells]
    words = [(at, cell) for at, cell in enumerate(cells) if values[at] is None and cell != ""]
    table.missing.update(cell for cell in cells if isinstance(cell, str) and (cell == "" or cell in _WORDS))
    kinds = Counter(_KINDS[type(value)] for value in values if value is not None)
    notes = []
    if words and (len(kinds) != 1 or kinds.keys() == {"text"}):
        said = f"{'text' if kinds else 'no values'}; a word for missing in {len(words):,} cells"
        step = f"{column_option(name, 'text')} keeps them as text"
        notes.append(Note(name, *words[0], said, step, changes_values=True))
    if len(kinds) > 1:
        return pa.array(map(_text, values), pa.string()), [*notes, _mixed(name, values, kinds)]
    if not kinds:
        return pa.nulls(len(values)), notes
    (found,) = kinds
    if found == "number":
        return _numbers(values), notes
    if found == "date":
        return _dates(values), notes
    return pa.array(values, {"time": pa.time64("us"), "duration": pa.duration("us")}.get(found)), notes


def _mixed(name: str, values: Sequence[Any], kinds: Counter[str]) -> Note:
    most, *_ = listed = kinds.most_common()
    place = next(at for at, value in enumerate(values) if value is not None and _KINDS[type(value)] != most[0])
    said = "mixed, stays text: " + ", ".join(f"{kind} ({count:,})" for kind, count in listed)
    step = f"repair the file; {column_option(name, 'text')} says that text is intended"
    return Note(name, place, str(_text(values[place])), said, step)


def _as_named(table: _Table, place: int, cells: Sequence[Any], kind: str) -> pa.Array:
    name = table.names[place]
    texts = pa.array([None if cell == "" else _text(cell) for cell in cells], pa.string())
    if kind in ("text", "category"):
        table.missing.update({"": texts.null_count} if texts.null_count else {})
        return texts if kind == "text" else texts.dictionary_encode()
    try:
        column = converted(pa.chunked_array([texts.fill_null("")]), kind, table.source.options)
    except NotOfType as unfit:
        where = f"{table.source.path}, {table.cell(place, unfit.place)}"
        raise not_taken(name, kind, unfit, where) from None
    table.missing.update(column.missing)
    return column.values


def _numbers(values: Sequence[Any]) -> pa.Array:
    """Return the numbers as integers if all of them are whole numbers, as pandas does. Otherwise, return them as
    floats."""
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
    """Return the value of a cell as text. Whole numbers have no '.0'."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None if value is None else str(value)
