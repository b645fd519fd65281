"""Read JSON files: count the records, then parse the records of the sample, so that types come from the whole sample.

data_generator.imported.tables.json_lines.columns finds the types. This module does not depend on other kinds of files.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.byte_stream import Line
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.fixed_types import Unfit, first_unfit, fitted, not_of_sample
from data_generator.imported.tables.json_lines import records as json_records
from data_generator.imported.tables.json_lines.columns import MOST_LEVELS, Column, Limit, Path, TooDeep
from data_generator.imported.tables.json_lines.records import Records
from data_generator.imported.tables.json_lines.values import is_sound, record_of, refuse, text_of
from data_generator.imported.tables.table_reading import Found, Reading, TableFile, as_batches
from data_generator.imported.tables.text_types import column_notes
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.conversion import NotOfType, check_columns, converted, not_taken
from data_generator.imported.tables.text_types.distinct_texts import MISSING

_MOST_AT_ONCE = 10_000
_FIRST_AT_ONCE = 1_000
_CELLS_AT_ONCE = 4_000_000
_BYTES_AT_ONCE = 8 << 20
"""Bytes of text that are parsed at once. Python objects take up to 30 times the memory of the text, and every record
needs memory for every column."""


def read(source: TableFile) -> Reading:
    """Return the sample of a file with JSON objects. Raises Refused if the file is invalid or has anything but
    objects."""
    records = json_records.found(source)
    input_rows = content_bytes = 0
    for part in records.parts():
        input_rows += len(part)
        content_bytes += sum(len(record.content) for record in part)
        yield input_rows
    if input_rows == 1 and records.layout is not json_records.Layout.ARRAY:
        records.check_document()
    blocks = source.type_blocks(input_rows, content_bytes)
    chosen = yield from _chosen(records, blocks, input_rows)
    lines = [record.number for record in chosen]
    gathered = yield from _gathered(source, chosen, input_rows)
    chosen.clear()
    notes: list[Note] = []
    arrays = {}
    for name, column in gathered.columns.items():
        if name in source.options.columns:
            texts = pa.chunked_array(column.typed(gathered.lengths, []))
            arrays[name] = _as_named(name, texts, source, lines, notes)
        else:
            arrays[name] = pa.chunked_array(column.typed(gathered.lengths, notes))
        yield input_rows
    table = pa.table(arrays)
    schema = table_types.kept_schema(table.schema)

    def wheres(places: Sequence[int]) -> dict[int, str]:
        return {place: f"line {lines[place]:,}" for place in places}

    remarks = [*table_types.name_remarks(schema.names), *column_notes.remarks(notes, wheres)]
    changed = column_notes.changed_columns(notes)
    understood = {"records": records.layout.value, "encoding": records.encoding}
    if source.whole and table.num_rows < input_rows:
        schema = _with_named(schema, source)
        paths = gathered.as_text | {path for field in schema for path in _text_paths((field.name,), field.type)}
        sample = _Sample(schema, paths, table.num_rows, frozenset(note.column for note in notes))
        batches = _all_rows(records, sample)
        everything = (sampling.Block(0, input_rows),)
        return Found(input_rows, everything, schema, batches, remarks, understood, changed)
    check_columns(source.options.columns, schema.names)
    missing = sum(column.null_count for column in table.columns)
    understood["missing values"] = f"{missing:,} null or left out" if missing else "none"
    return Found(input_rows, blocks, schema, as_batches(table.cast(schema)), remarks, understood, changed)


@dataclass(frozen=True)
class _Sample:
    """Results from a sample: the types, the paths (columns or nested fields, such as a.b) whose values are text, the
    number of rows in the sample, and the paths with a warning."""

    schema: pa.Schema
    as_text: frozenset[Path]
    rows: int
    warned: frozenset[str]


def _all_rows(records: Records, sample: _Sample) -> Iterator[pa.RecordBatch]:
    """Yield all rows of the file with the types that the sample determined.

    Raises Refused, naming the line, for a record that does not fit, or that needs a warning although the sample gave
    none.
    """
    source = records.source
    wanted, seen = source.options.columns.keys(), set[str]()
    for part in records.parts():
        for _, lines in _parts(part, sample.schema.names):
            try:
                batch = _fitted(source, lines, sample)
            except _UnfitColumn as unfit:
                raise _not_of_sample(source, lines, sample, unfit) from None
            seen.update(name for name in wanted - seen if batch.column(name).null_count < batch.num_rows)
            yield from table_types.kept(batch, sample.schema)
    check_columns(source.options.columns, [name for name in sample.schema.names if name not in wanted - seen])


def _with_named(schema: pa.Schema, source: TableFile) -> pa.Schema:
    """Return the schema, extended by the columns that the user named but that do not occur in the sample."""
    none = pa.chunked_array([], pa.string())
    for name, kind in source.options.columns.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, converted(none, kind, source.options).values.type))
    return table_types.kept_schema(schema)


def _text_paths(path: Path, kind: pa.DataType) -> Iterator[Path]:
    """Yield the path of each text within a column of the type `kind`. `path` is the path of the column."""
    if pt.is_string(kind) or pt.is_dictionary(kind):
        yield path
    elif pt.is_struct(kind):
        for place in range(kind.num_fields):
            yield from _text_paths((*path, kind.field(place).name), kind.field(place).type)
    elif pt.is_list(kind):
        yield from _text_paths((*path, None), kind.value_type)


class _UnfitColumn(Exception):
    """Raised if records have a value that does not fit the type of its column."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _fitted(source: TableFile, lines: Sequence[Line], sample: _Sample) -> pa.RecordBatch:
    """Return these records as rows. Raises _UnfitColumn if a value does not fit its column, and Refused for invalid
    records."""
    schema = sample.schema
    root = Column((), sample.as_text, Limit())
    _add(source, root, 0, 0, lines)
    for name in root.fields:
        if name not in schema.names:
            raise _UnfitColumn(name)
    numbers = [line.number for line in lines]
    arrays = []
    for field in schema:
        column = root.fields.get(field.name)
        if column is None:
            arrays.append(pa.nulls(len(lines), field.type))
            continue
        if next(column.mixed(), None) is not None:
            raise _UnfitColumn(field.name)
        notes: list[Note] = []
        (values,) = column.typed([len(lines)], notes)
        if field.name in source.options.columns:
            arrays.append(_as_named(field.name, pa.chunked_array([values]), source, numbers, []).combine_chunks())
            continue
        if any(note.column not in sample.warned for note in notes):
            raise _UnfitColumn(field.name)
        try:
            arrays.append(fitted(values, field.type))
        except Unfit:
            raise _UnfitColumn(field.name) from None
    return pa.RecordBatch.from_arrays(arrays, schema.names)


def _not_of_sample(source: TableFile, lines: Sequence[Line], sample: _Sample, unfit: _UnfitColumn) -> Refused:
    """Return the error for the first of these records that does not fit. `unfit` was raised for all records
    together."""

    def fits(count: int) -> bool:
        nonlocal unfit
        try:
            _fitted(source, lines[:count], sample)
        except _UnfitColumn as found:
            unfit = found
            return False
        return True

    line = lines[first_unfit(len(lines), fits)]
    value = (record_of(line.content) or {}).get(unfit.name)
    schema = sample.schema
    kind = schema.field(unfit.name).type if unfit.name in schema.names else None
    where = f"{source.path}, line {line.number:,}"
    return not_of_sample(unfit.name, text_of(value) or "null", kind, sample.rows, where)


def _chosen(records: Records, blocks: Sequence[sampling.Block], input_rows: int) -> Generator[int, None, list[Line]]:
    chosen: list[Line] = []
    row = 0
    for part in records.parts():
        for block in sampling.overlaps(blocks, row, len(part)):
            chosen += part[block.start : block.end]
        row += len(part)
        yield input_rows
    if row < blocks[-1].end:
        raise Refused("changed while it was read", "Try again.", records.source.path)
    return chosen


@dataclass(frozen=True)
class _Gathered:
    """The columns of the sample by name, the number of records in each part, and the paths (e.g. a.b) whose values
    became text."""

    columns: dict[str, Column]
    lengths: list[int]
    as_text: frozenset[Path]


def _gathered(source: TableFile, chosen: Sequence[Line], input_rows: int) -> Generator[int, None, _Gathered]:
    """Return the columns of the sample.

    If the values of a column or nested field are of several kinds, they become text. Yields the number of rows
    repeatedly, because a process that sends no messages is ended.
    """
    named = source.options.columns
    as_text: frozenset[Path] = frozenset((name,) for name in named)
    while True:
        root = Column((), as_text, Limit())
        lengths: list[int] = []
        for start, part in _parts(chosen, root.fields):
            _add(source, root, len(lengths), start, part)
            lengths.append(len(part))
            yield input_rows
        mixed = frozenset(path for column in root.fields.values() for path in column.mixed())
        if not mixed:
            break
        as_text |= mixed
    if not root.fields:
        raise Refused("has only empty objects", "Name a file with a table.", source.path)
    source.progress.at(source.path)
    if not source.whole:
        check_columns(named, list(root.fields))
    return _Gathered(root.fields, lengths, as_text)


def _parts(chosen: Sequence[Line], columns: Collection[str]) -> Iterator[tuple[int, Sequence[Line]]]:
    """Yield (index of the first record, records) for parts of limited size.

    The limit depends on the number of `columns`, which may grow while the parts are used.
    """
    start = 0
    while start < len(chosen):
        most = min(_MOST_AT_ONCE, max(100, _CELLS_AT_ONCE // len(columns))) if columns else _FIRST_AT_ONCE
        end, size_bytes = start, 0
        while end < min(start + most, len(chosen)) and size_bytes < _BYTES_AT_ONCE:
            size_bytes += len(chosen[end].content)
            end += 1
        yield start, chosen[start:end]
        start = end


def _add(source: TableFile, root: Column, number: int, start: int, part: Sequence[Line]) -> None:
    """Parse the records of a part and add them to `root`. Raises Refused, naming the line."""
    source.progress.at(f"{source.path}, line {part[0].number:,}")
    parsed = []
    for record in part:
        values = record_of(record.content)
        if values is None:
            refuse(record.content, f"{source.path}, line {record.number:,}")
        parsed.append(values)
    source.progress.at(source.path)
    try:
        root.add_objects(number, parsed, lambda place: start + place)
    except TooDeep as deep:
        where = f"{source.path}, line {part[deep.place - start].number:,}"
        raise Refused(f"is nested more than {MOST_LEVELS} levels deep", "Leave it out.", where) from None
    except (UnicodeEncodeError, RecursionError):
        for record, values in zip(part, parsed, strict=True):
            if not is_sound(values):
                refuse(record.content, f"{source.path}, line {record.number:,}")
        raise


def _as_named(
    name: str, values: pa.ChunkedArray, source: TableFile, lines: Sequence[int], notes: list[Note]
) -> pa.ChunkedArray:
    """Convert a text column to the type that the user names. Raises Refused, naming the line, for a value that does not
    fit."""
    kind = source.options.columns[name]
    if kind in ("text", "category"):
        return values if kind == "text" else values.dictionary_encode()
    is_missing = pc.fill_null(pc.is_in(values, value_set=pa.array(MISSING)), False)
    if count := pc.sum(is_missing).as_py():
        place = pc.index(is_missing, True).as_py()
        said = f"{kind}; {count:,} values are words for a missing value and become missing"
        notes.append(Note(name, place, values[place].as_py(), said, f"{column_option(name, 'text')} keeps them"))
    try:
        return pa.chunked_array([converted(pc.fill_null(values, ""), kind, source.options).values])
    except NotOfType as unfit:
        raise not_taken(name, kind, unfit, f"{source.path}, line {lines[unfit.place]:,}") from None
