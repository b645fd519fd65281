"""Read CSV files: count the rows, read the sample as text, and then infer the types from the whole sample.

The file is read twice, and a third time if all rows of a large file are wanted. pyarrow's own type inference uses only
the first block of a file. It is not used, because a column that begins with integers may have other values later. This
module does not import the readers of other kinds of files.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.types as pt

from data_generator.imported.byte_stream import BLOCK_BYTES, ByteStream, first_bytes
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.csv_layout import Layout, QuoteCheck, delimiter_name, found_layout
from data_generator.imported.tables.fixed_types import Unfit, first_unfit, fitted, not_of_sample
from data_generator.imported.tables.table_reading import Found, Reading, TableFile, as_batches
from data_generator.imported.tables.text_types import column_notes
from data_generator.imported.tables.text_types.column_notes import Note, column_option
from data_generator.imported.tables.text_types.conversion import NotOfType, check_columns, converted, not_taken
from data_generator.imported.tables.text_types.distinct_texts import MISSING, DistinctTexts, missing_text
from data_generator.imported.tables.text_types.inference import Column, inferred, refuse_encoding

_FEW_COLUMNS = 32
"""Maximum number of columns that are read as plain text. If there are more columns, they are read as dictionaries,
which takes four times as long. As plain text, they would take gigabytes, because pyarrow reserves a whole block for
each text column."""

_ODD_ROW = re.compile(r"[^#]*Row #(?P<row>\d+): Expected (?P<expected>\d+) columns, got (?P<found>\d+)")
_UNESCAPED = "Write the file again: pandas.read_csv(FILE, escapechar='\\\\').to_csv(NEW, index=False)"
"""The step for files in which a backslash precedes each quotation mark within a value."""

_MAY_BE_VALUE = re.compile(r"\s*[-+.]?[0-9]|(?i:true|false)$")
"""Matches column names that may be numbers, dates, times or booleans. Most names are not."""

_WORDLESS = "text without words for a missing value"

_SCANNED_ROWS = 20_000_000
"""Largest row number whose line number is found by reading the file again. For larger row numbers, messages name the
row."""


@dataclass(frozen=True)
class _File:
    source: TableFile
    layout: Layout

    def bytes(self) -> ByteStream:
        """Return the content from the header on."""
        content = self.source.content()
        content.skip_lines(self.layout.skipped)
        return content

    @cached_property
    def first_record(self) -> list[str]:
        """Return the fields of the first record, which are the column names unless there is no header.

        Raises Refused if there is no row, or if the record cannot be read.
        """
        csv.field_size_limit(BLOCK_BYTES)
        lines = self.bytes().text_lines(BLOCK_BYTES + 1, "strict")
        records = filter(None, csv.reader(lines, delimiter=self.layout.delimiter))
        first = None
        try:
            first = next(records)
            # If no row follows the header, pyarrow treats the header as a row that never ends.
            if self.layout.has_header:
                next(records)
        except StopIteration:
            raise Refused("has no rows", "Name a file with a table.", self.source.path) from None
        except (UnicodeDecodeError, csv.Error) as error:
            if first is None and isinstance(error, UnicodeDecodeError):
                self._refuse_bytes()
            if first is None:
                self._refuse_length(f"{self.source.path}, line {self.layout.skipped + 1}")
        return first

    @property
    def keys(self) -> list[str]:
        """Return unique column names for pyarrow: '0', '1', ..."""
        return list(map(str, range(len(self.first_record))))

    def batches(self, content: ByteStream, keys: Sequence[str], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the columns `keys`, read as the type `kind`. Raises Refused, naming the line, for invalid
        rows."""
        rows = 0
        try:
            with self._reader(content, keys, kind) as reader:
                for batch in reader:
                    rows += batch.num_rows
                    self.source.progress.at(f"{self.source.path}, row {rows:,}")
                    yield batch
        except pa.ArrowInvalid as error:
            self._refuse(error, rows)

    def _reader(self, content: ByteStream, keys: Sequence[str], kind: pa.DataType) -> Any:
        return pyarrow.csv.open_csv(
            content,
            pyarrow.csv.ReadOptions(
                use_threads=False,
                # pyarrow reads up to 32 blocks ahead.
                block_size=BLOCK_BYTES,
                column_names=self.keys,
                skip_rows_after_names=int(self.layout.has_header),
            ),
            pyarrow.csv.ParseOptions(delimiter=self.layout.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(keys, kind), include_columns=list(keys)),
        )

    def _refuse(self, error: pa.ArrowInvalid, rows: int) -> NoReturn:
        said = str(error).splitlines()[0]
        if odd := _ODD_ROW.match(said):
            columns = "column" if odd["found"] == "1" else "columns"
            first = "header" if self.layout.has_header else "first row"
            raise Refused(
                f"has {odd['found']} {columns}, but the {first} has {odd['expected']} "
                f"(the delimiter is a {delimiter_name(self.layout.delimiter)})",
                "Repair the line, or name another `delimiter`.",
                # pyarrow counts the header as row 1.
                self.place(int(odd["row"]) - 1 - self.layout.has_header),
            ) from None
        if "UTF8" in said or "UTF-8" in said:
            self._refuse_bytes()
        if "straddling" in said:
            self._refuse_length(self.place(rows))
        if "Empty CSV" in said:
            raise Refused("has no rows", "Name a file with a table.", self.source.path) from None
        raise Refused(f"cannot be read as CSV: {said}", "Repair it, or name another file.") from None

    def _refuse_length(self, where: str) -> NoReturn:
        raise Refused(
            f"begins a row of more than {BLOCK_BYTES >> 20} MB",
            "Probably a quotation mark is not closed. Close it, or leave the line out.",
            where,
        ) from None

    def _refuse_bytes(self) -> NoReturn:
        """Raise Refused, naming the line of the first byte that is not UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        content, line = self.source.content(), 1
        while part := content.read(BLOCK_BYTES):
            try:
                decoder.decode(part)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                refuse_encoding(f"{self.source.path}, line {line:,}", error.object[error.start], part)
            line += part.count(b"\n")
        raise Refused("ends within a UTF-8 character", "Write the file again.", self.source.path)

    def refuse_lone_quote(self, *, has_backslashes: bool) -> Iterator[None]:
        """Raise Refused if a quoted value contains a quotation mark that is not doubled, or is not closed. Parsers drop
        such a mark or join rows, which changes values. Yields repeatedly, because a process that sends no messages is
        ended.

        `has_backslashes` is whether quotation marks follow backslashes, so that these may be meant as escapes.
        """
        csv.field_size_limit(BLOCK_BYTES)
        reader = csv.reader(self.bytes().text_lines(BLOCK_BYTES + 1), delimiter=self.layout.delimiter, strict=True)
        before = 0
        try:
            for number, _ in enumerate(reader):
                before = reader.line_num
                if number % 100_000 == 0:
                    self.source.progress.at(f"{self.source.path}, line {before:,}")
                    yield
        except csv.Error as error:
            if "unexpected end" in str(error) or "larger than field limit" in str(error):
                said, step = "begins a quoted value that is not closed", "Close its quotation mark."
            else:
                said = 'has a quotation mark that is not doubled ("") within a quoted value'
                step = 'Write "" for each quotation mark within a quoted value, or remove it.'
            where = f"{self.source.path}, line {self.layout.skipped + before + 1:,}"
            raise Refused(said, _UNESCAPED if has_backslashes else step, where) from None

    def place(self, row: int) -> str:
        """Return the position of a row in the file, for messages. `row` is counted from 0 after the header."""
        lines = self.lines_of([row]) if row <= _SCANNED_ROWS else {}
        return f"{self.source.path}, line {lines[row]:,}" if row in lines else f"{self.source.path}, row {row + 1:,}"

    def lines_of(self, rows: Sequence[int]) -> dict[int, int]:
        """Return row number -> number of the line in which the row begins. The numbers differ if values contain
        newlines or if lines are empty."""
        csv.field_size_limit(BLOCK_BYTES)
        wanted, found, row = set(rows), {}, -1 - self.layout.has_header
        reader = csv.reader(self.bytes().text_lines(BLOCK_BYTES + 1), delimiter=self.layout.delimiter)
        before = self.layout.skipped
        try:
            for fields in reader:
                row += bool(fields)
                if fields and row in wanted:
                    found[row] = before + 1
                    if len(found) == len(wanted):
                        break
                before = self.layout.skipped + reader.line_num
        except csv.Error:
            # A row that is longer than a block begins where the previous row ended.
            found.setdefault(row + 1, before + 1)
        return found


def read(source: TableFile) -> Reading:
    """Return the sample of a CSV file. The first row has the column names, unless `source.options.header` is False.

    Raises Refused for invalid files.
    """
    content = source.content()
    beginning = first_bytes(content).decode("utf-8", "replace")
    even, odd = (beginning[start:1000:2].count("\0") > len(beginning[start:1000:2]) / 2 for start in (0, 1))
    if even != odd:
        encoding = "utf-16-be" if even else "utf-16-le"
        raise Refused(
            "seems to be UTF-16, because about every second byte is 0", f"Try `encoding={encoding!r}`.", source.path
        )
    is_by_tabs = ".tsv" in source.path.lower()[-8:]
    layout = found_layout(beginning, source.options, is_by_tabs=is_by_tabs, longest=BLOCK_BYTES)
    file = _File(source, layout)
    record = file.first_record
    names = table_types.named(record) if layout.has_header else file.keys
    check_columns(source.options.columns, names)
    input_rows, newlines, content_bytes = yield from _counted(file)
    blocks = source.type_blocks(input_rows, content_bytes)
    texts = yield from _texts(file, blocks, input_rows)
    is_a_row_a_line = newlines == input_rows + layout.has_header

    def wheres(places: Sequence[int]) -> dict[int, str]:
        rows = {place: sampling.row_at(blocks, place) for place in places}
        first = layout.skipped + layout.has_header + 1
        if is_a_row_a_line:
            return {place: f"line {row + first:,}" for place, row in rows.items()}
        found = file.lines_of([row for row in rows.values() if row <= _SCANNED_ROWS])
        return {place: f"line {found[row]:,}" for place, row in rows.items() if row in found}

    columns: list[Column] = []
    notes: list[Note] = []
    repeats = False
    for name, first in zip(names, record, strict=True):
        column = texts.pop(0)
        columns.append(_typed(name, column, source, wheres))
        notes += columns[-1].notes
        repeats = repeats or (layout.has_header and pt.is_string(columns[-1].values.type) and _occurs(first, column))
        yield input_rows
    if any(column.has_decimal_commas for column in columns):
        notes += [column.thousands for column in columns if column.thousands is not None]
    table = pa.table([column.values for column in columns], names=names)
    remarks = [*layout.remarks, *table_types.name_remarks(names), *column_notes.remarks(notes, wheres)]
    if layout.has_header and (repeats or _are_values(record, columns, source.options)):
        remarks.insert(0, _no_header(layout, record))
    if not is_a_row_a_line and len(names) == 1 and newlines > input_rows:
        remarks.append('empty lines are skipped, as in pandas\nif an empty line is meant as a missing value, write ""')
    schema = table_types.kept_schema(table.schema)
    changed = column_notes.changed_columns(notes)
    understood = {
        **layout.understood(record),
        "encoding": content.encoding,
        **({"decimal": "comma"} if source.options.decimal == "," else {}),
        **_times_of_day(names, columns, source.options),
    }
    if source.whole and table.num_rows < input_rows:

        def where(row: int) -> str:
            line = row + layout.skipped + layout.has_header + 1
            return f"{source.path}, line {line:,}" if is_a_row_a_line else file.place(row)

        warned = frozenset(note.column for note in notes)
        wordless = frozenset(
            name
            for name, column in zip(names, columns, strict=True)
            if not column.has_words and (pt.is_string(column.values.type) or pt.is_null(column.values.type))
        )
        sample = _Sample(schema, table.num_rows, warned, wordless - source.options.columns.keys())
        batches = _all_rows(file, sample, where)
        everything = (sampling.Block(0, input_rows),)
        return Found(input_rows, everything, schema, batches, remarks, understood, changed)
    understood["missing values"] = _missing_text(columns)
    return Found(input_rows, blocks, schema, as_batches(table.cast(schema)), remarks, understood, changed)


def _typed(name: str, texts: pa.ChunkedArray, source: TableFile, wheres: column_notes.Wheres) -> Column:
    kind = source.options.columns.get(name)
    if kind is None:
        return inferred(name, texts, source.options)
    try:
        return converted(texts, kind, source.options)
    except NotOfType as unfit:
        where = wheres([unfit.place]).get(unfit.place, "")
        raise not_taken(name, kind, unfit, f"{source.path}, {where}" if where else source.path) from None


@dataclass(frozen=True)
class _Sample:
    """Results from a sample: the types, the number of rows in the sample, and the names of columns with a warning.

    `wordless` has the names of columns of text, or without values, in which no word such as 'NA' occurs.
    """

    schema: pa.Schema
    rows: int
    warned: frozenset[str]
    wordless: frozenset[str]


def _all_rows(file: _File, sample: _Sample, where: Callable[[int], str]) -> Iterator[pa.RecordBatch]:
    """Yield all rows of the file with the types that the sample or the user determined.

    Raises Refused for a value that does not fit its type. If the sample gave no warning for a column, also raises
    Refused for a value that needs a warning, such as a number with leading zeros. `where` returns the position of a
    row.
    """
    schema = sample.schema
    rows = 0
    for batch in file.batches(file.bytes(), file.keys, _text_type(file)):
        arrays = []
        for field, part in zip(schema, batch.columns, strict=True):
            texts = pa.chunked_array([part if pt.is_string(part.type) else part.dictionary_decode()])
            try:
                arrays.append(_of_type(field, texts, file.source.options, sample))
            except NotOfType as unfit:
                named = file.source.options.columns.get(field.name)
                place = where(rows + unfit.place)
                if named is not None:
                    raise not_taken(field.name, named, unfit, place) from None
                kind = _WORDLESS if pt.is_string(field.type) else field.type
                raise not_of_sample(field.name, unfit.value, kind, sample.rows, place) from None
        rows += batch.num_rows
        yield from table_types.kept(pa.RecordBatch.from_arrays(arrays, schema.names), schema)


def _of_type(field: pa.Field, texts: pa.ChunkedArray, options: ReadOptions, sample: _Sample) -> pa.Array:
    """Return a part of a column, converted to the type that the sample or the user determined.

    Raises NotOfType for a value that does not fit. Unless the sample gave a warning for the column, also raises
    NotOfType for a value that needs a warning.
    """
    if field.name in options.columns:
        return converted(texts, options.columns[field.name], options).values
    is_text, is_wordless = pt.is_string(field.type), field.name in sample.wordless
    is_warned = field.name in sample.warned
    if is_text or is_wordless:
        distinct = DistinctTexts(texts)
        word = next(filter(None, distinct.missing), None)
        if word is not None and is_wordless:
            raise NotOfType(distinct.first_missing(word), word)
        if is_text:
            return distinct.texts

    def typed(count: int) -> pa.Array:
        column = inferred(field.name, texts.slice(0, count), options)
        if pt.is_null(column.values.type):
            # Words for a missing value need no warning, because the column has values of another type than text.
            return pa.nulls(count, field.type)
        if column.notes and not is_warned:
            raise Unfit
        return fitted(column.values, field.type)

    def fits(count: int) -> bool:
        try:
            typed(count)
        except Unfit:
            return False
        return True

    try:
        return typed(len(texts))
    except Unfit:
        place = first_unfit(len(texts), fits)
        raise NotOfType(place, texts[place].as_py()) from None


def _occurs(text: str, column: pa.ChunkedArray) -> bool:
    """Return whether `text`, the name of the column, is also one of the column's values."""
    return bool(text) and pa.compute.index(column, text).as_py() >= 0


def _are_values(record: Sequence[str], columns: Sequence[Column], options: ReadOptions) -> bool:
    """Return whether the record used as column names looks like values.

    It does if a name is a boolean, a date or a time and its column has this type, or if all columns of numbers have
    numbers as names. Names that are empty or mean a missing value do not count.
    """
    if record[0] == "":
        # pandas writes an empty name for its index. The other names may then be numbers, such as years.
        return False
    are_numbers = []
    for text, column in zip(record, columns, strict=True):
        wanted = _family(column.values.type)
        if wanted is None or text in MISSING:
            continue
        is_value = _MAY_BE_VALUE.match(text) and wanted == _family(
            inferred("", pa.chunked_array([[text]], pa.string()), options).values.type
        )
        if wanted == "number":
            are_numbers.append(is_value)
        elif is_value:
            return True
    return bool(are_numbers) and all(are_numbers)


def _family(kind: pa.DataType) -> str | None:
    """Return the kind of values of a type; None for text and other types that no name can be recognized by."""
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return "number"
    if pt.is_date(kind) or pt.is_timestamp(kind):
        return "moment"
    return "boolean" if pt.is_boolean(kind) else "time" if pt.is_time(kind) else None


def _no_header(layout: Layout, record: Sequence[str]) -> str:
    shown = ", ".join(map(repr, record[:4])) + (", .." if len(record) > 4 else "")
    return (
        f"line {layout.skipped + 1} is used as the column names, but looks like values: {shown}\n"
        "--no-header reads it as the first row"
    )


def _times_of_day(names: Sequence[str], columns: Sequence[Column], options: ReadOptions) -> dict[str, str]:
    """Return a description of the columns that became times of day. Durations such as 1:45 look the same."""
    found = [
        name
        for name, column in zip(names, columns, strict=True)
        if pt.is_time(column.values.type) and name not in options.columns
    ]
    if not found:
        return {}
    shown = ", ".join(map(repr, found[:4])) + (", .." if len(found) > 4 else "")
    return {"times of day": f"{shown}; if durations are meant, {column_option(found[0], 'text')} keeps them as text"}


def _missing_text(columns: Sequence[Column]) -> str:
    spelled: Counter[str] = Counter()
    for column in columns:
        spelled.update(column.missing)
    return missing_text(spelled)


def _counted(file: _File) -> Generator[int, None, tuple[int, int, int]]:
    """Return the numbers of rows, lines and bytes. Yields the number of rows so far.

    Raises Refused for quotation marks that parsers would drop.
    """
    content, rows = file.bytes(), 0
    quotes = QuoteCheck(file.layout.delimiter)
    content.watch = quotes.see
    try:
        for batch in file.batches(content, file.keys[:1], pa.binary()):
            rows += batch.num_rows
            yield rows
        quotes.end()
    except Refused:
        # A quotation mark may be the reason why a row has too many fields.
        if quotes.is_irregular:
            for _ in file.refuse_lone_quote(has_backslashes=quotes.has_backslashes):
                yield rows
        raise
    if quotes.is_irregular:
        for _ in file.refuse_lone_quote(has_backslashes=quotes.has_backslashes):
            yield rows
    return rows, content.newlines + (content.last not in (b"\n", b"")), content.read_bytes


def _text_type(file: _File) -> pa.DataType:
    return pa.string() if len(file.keys) <= _FEW_COLUMNS else pa.dictionary(pa.int32(), pa.string())


def _texts(
    file: _File, blocks: Sequence[sampling.Block], input_rows: int
) -> Generator[int, None, list[pa.ChunkedArray]]:
    """Return the columns of the sample as text. While reading, yields the number of rows repeatedly, because a process
    that sends no messages is ended."""
    parts: list[list[pa.Array]] = [[] for _ in file.keys]
    start = 0
    kind = _text_type(file)
    for batch in file.batches(file.bytes(), file.keys, kind):
        for block in sampling.overlaps(blocks, start, batch.num_rows):
            # A slice alone would keep the whole batch in memory.
            own = batch.take(pa.array(np.arange(block.start, block.end)))
            for column, array in zip(parts, own.columns, strict=True):
                column.append(array if kind == pa.string() else array.dictionary_decode())
        start += batch.num_rows
        yield input_rows
    if start < blocks[-1].end:
        raise Refused("changed while it was read", "Try again.", file.source.path)
    return [pa.chunked_array(column, pa.string()) for column in parts]
