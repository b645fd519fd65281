"""JSON Lines: counted by lines, then the lines of the sample parsed together, so that types come from all of them.

A column whose values are of several kinds stays text. This module knows no other kind of file.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.json
import pyarrow.types as pt

from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.table_reading import Found, Reading, Source, as_batches, chosen_blocks
from data_generator.imported.tables.text_columns import (
    Misfit,
    as_utf8,
    in_microseconds,
    misfit_remarks,
    refuse_encoding,
)

BLOCK_BYTES = 8 << 20
"""What is read at once; a line cannot be longer."""

_MOST_PARSED_BYTES = 256 << 20
_LINES_AT_ONCE = 1000
"""Whose names are looked at together: pyarrow fills in what a line lacks, which for lines that have each a name of
their own costs the square of their number."""
_CHANGED = re.compile(r"Column\(/([^/)]*)[^)]*\) changed from")
_IN_ROW = re.compile(r" in row (\d{1,9})$")
"""Of what is parsed at once, from 0."""
_KINDS: Mapping[type, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "number",
    list: "list",
    str: "text",
}


@dataclass(frozen=True)
class _Line:
    """One line with a record, and its number in the file."""

    number: int
    content: bytes


def read(source: Source) -> Reading:
    """The sample of a file with a JSON object a line. Raises Refused."""
    _check_beginning(source)
    input_rows = 0
    for lines in _parts(source):
        input_rows += _records(lines)
        yield input_rows
    blocks = chosen_blocks(input_rows, source.rows)
    chosen = yield from _chosen(source, blocks, input_rows)
    _check_number(source, chosen)
    table, misfits = _parsed(source, chosen)
    schema = table_types.kept_schema(table.schema)

    def lines_of(places: Sequence[int]) -> dict[int, int]:
        return {place: chosen[place].number for place in places}

    return Found(input_rows, blocks, schema, as_batches(table.cast(schema)), misfit_remarks(misfits, lines_of))


def _check_beginning(source: Source) -> None:
    source.stream.seek(0)
    beginning = source.stream.read(1 << 16)
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Refused("is UTF-16, and UTF-8 is read", as_utf8("utf-16"), f"{source.path}, line 1")
    if beginning.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        raise Refused(
            "begins with '[': it is one JSON array, and an object a line is read (JSON Lines)",
            "write it again: pandas.read_json(FILE).to_json(NEW, orient='records', lines=True)",
            f"{source.path}, line 1",
        )


def _parts(source: Source) -> Iterator[list[bytes]]:
    """The lines of the file, those of a block together. Raises Refused for a line of more than a block."""
    source.stream.seek(0)
    if source.stream.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        source.stream.seek(0)
    rest, number = b"", 1
    while part := source.stream.read(BLOCK_BYTES):
        lines = (rest + part).split(b"\n")
        rest = lines.pop()
        yield lines
        number += len(lines)
        source.progress.at(f"{source.path}, line {number:,}")
        if len(rest) > BLOCK_BYTES:
            raise Refused(f"is longer than {BLOCK_BYTES >> 20} MB", "leave it out, or store the table as Parquet")
    yield [rest]


def _records(lines: Sequence[bytes]) -> int:
    """How many of the lines are not empty."""
    return sum(map(bool, map(bytes.strip, lines)))


def _chosen(source: Source, blocks: Sequence[sampling.Block], input_rows: int) -> Generator[int, None, list[_Line]]:
    chosen: list[_Line] = []
    row, first = 0, 1
    for lines in _parts(source):
        rows = _records(lines)
        parts = list(sampling.overlaps(blocks, row, rows))
        if parts:
            filled = [_Line(first + place, line) for place, line in enumerate(lines) if line.strip()]
            for part in parts:
                chosen += filled[part.start : part.end]
        row += rows
        first += len(lines)
        yield input_rows
    if row < blocks[-1].end:
        raise Refused("was changed while it was read", "try again", source.path)
    for line in chosen:
        _check_encoding(source, line)
    return chosen


def _check_encoding(source: Source, line: _Line) -> None:
    try:
        line.content.decode()
    except UnicodeDecodeError as error:
        refuse_encoding(f"{source.path}, line {line.number:,}", line.content[error.start])


def _check_number(source: Source, lines: Sequence[_Line]) -> None:
    """Raises Refused for more names in all lines than columns are taken, before they are parsed together."""
    source.progress.at(source.path)
    contents = [line.content for line in lines]
    # A name has a colon behind it: most small tables need no more than this.
    if sum(content.count(b":") for content in contents) <= table_types.MOST_COLUMNS:
        return
    names: set[str] = set()
    for start in range(0, len(contents), _LINES_AT_ONCE):
        names |= _names(contents[start : start + _LINES_AT_ONCE])
        table_types.check_number(len(names))


def _names(contents: Sequence[bytes]) -> set[str]:
    """The names in these lines; of lines that are no objects none, which are told once all are parsed."""
    if max(content.count(b":") for content in contents) <= table_types.MOST_COLUMNS:
        with contextlib.suppress(pa.ArrowInvalid):
            return set(_table(contents).column_names)
    names: set[str] = set()
    for content in contents:
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(content)
            names.update(record if isinstance(record, dict) else ())
    return names


def _parsed(source: Source, lines: Sequence[_Line]) -> tuple[pa.Table, list[Misfit]]:
    """The records as a table, and what keeps columns from being of one kind."""
    source.progress.at(source.path)
    contents = [line.content for line in lines]
    misfits: dict[str, Misfit | None] = {}
    while True:
        try:
            table = _table(contents)
        except pa.ArrowInvalid as error:
            name = _changing_column(error)
            if name is None or name in misfits:
                _refuse(source, str(error).splitlines()[0], lines)
            misfits[name] = _first_misfit(source, lines, name)
            contents = [_as_text(content, name) for content in contents]
            continue
        if not table.num_columns:
            raise Refused("holds objects without names", "name a file with a table in it", source.path)
        if table.num_rows != len(contents):
            _refuse(source, "objects and lines are not the same number", lines)
        return table, [misfit for misfit in misfits.values() if misfit is not None]


def _table(contents: Sequence[bytes]) -> pa.Table:
    whole = b"\n".join(contents)
    options = pyarrow.json.ReadOptions(
        use_threads=False, block_size=min(max(len(whole) + 1, 1 << 20), _MOST_PARSED_BYTES)
    )
    table = pyarrow.json.read_json(pa.BufferReader(whole), options)
    columns = [in_microseconds(column) if pt.is_timestamp(column.type) else column for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _changing_column(error: pa.ArrowInvalid) -> str | None:
    match = _CHANGED.search(str(error))
    return match[1] if match else None


def _as_text(content: bytes, name: str) -> bytes:
    record = json.loads(content)
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        record[name] = json.dumps(value, ensure_ascii=False)
    return json.dumps(record, ensure_ascii=False).encode()


def _first_misfit(source: Source, lines: Sequence[_Line], name: str) -> Misfit | None:
    """The first value of the column that is of another kind than the first one; None where that is deeper inside."""
    first = None
    for place, line in enumerate(lines):
        value = _record(source, line).get(name)
        kind = _KINDS.get(type(value))
        first = first or kind
        if kind is not None and kind != first:
            return Misfit(name, place, json.dumps(value, ensure_ascii=False), str(first))
    return None


def _record(source: Source, line: _Line) -> dict[str, Any]:
    """Raises Refused, with the line, for what is no JSON object."""
    where = f"{source.path}, line {line.number:,}"
    try:
        record = json.loads(line.content)
    except json.JSONDecodeError as error:
        raise Refused(
            f"is no JSON: {error.msg} (column {error.colno:,})", "repair it, or leave it out", where
        ) from None
    except RecursionError:
        raise Refused("is nested too deeply", "leave it out", where) from None
    if not isinstance(record, dict):
        raise Refused("is JSON, but no object with names", "write an object a line: {..}", where)
    return record


def _refuse(source: Source, said: str, lines: Sequence[_Line]) -> NoReturn:
    """Raises Refused: for the first line that is no object, or with what is said."""
    for line in lines:
        _record(source, line)
    where = source.path
    if (in_row := _IN_ROW.search(said)) and sum(len(line.content) + 1 for line in lines) <= _MOST_PARSED_BYTES:
        where = f"{source.path}, line {lines[int(in_row[1])].number:,}"
        said = said[: in_row.start()]
    raise Refused(f"cannot be read as JSON Lines: {said}", "repair it, or name another", where) from None
