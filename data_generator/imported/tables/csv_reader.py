"""CSV: counted, then its sample read as text, then the types found in the whole sample.

Twice through the file and no more: pyarrow's own types come from its first block alone, and a column that begins with
integers may go on with anything. This module knows no other kind of file.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.types as pt

from data_generator.imported.byte_stream import ByteStream, first_bytes
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.table_reading import Found, Reading, Source, as_batches, chosen_blocks
from data_generator.imported.tables.text_columns import (
    Misfit,
    first_misfit,
    inferred,
    misfit_remarks,
    refuse_encoding,
)

BLOCK_BYTES = 8 << 20
"""What is parsed at once; a row cannot be longer. pyarrow reads up to 32 of them ahead."""

_FEW_COLUMNS = 32
"""pyarrow reserves a whole block for each column of text. With more columns that would be gigabytes; dictionaries,
which are four times as slow, reserve nothing."""

_ODD_ROW = re.compile(r"[^#]*Row #(?P<row>\d+): Expected (?P<expected>\d+) columns, got (?P<found>\d+)")
_DELIMITERS = (",", ";", "\t", "|")
_SCANNED_ROWS = 20_000_000
"""Up to here rows are turned into lines of the file by reading it once more."""


@dataclass(frozen=True)
class _File:
    """One CSV file: how it is divided."""

    source: Source
    delimiter: str

    def bytes(self) -> ByteStream:
        """From the beginning."""
        return self.source.content()

    def batches(
        self, content: ByteStream, types: dict[str, pa.DataType], columns: Sequence[str], rows: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these columns, block by block. Raises Refused, with the line, for what cannot be parsed."""
        try:
            with self._reader(content, types, columns) as reader:
                for batch in reader:
                    rows += batch.num_rows
                    self.source.progress.at(f"{self.source.path}, row {rows:,}")
                    yield batch
        except pa.ArrowInvalid as error:
            self._refuse(error, rows)

    def header(self) -> list[str]:
        """The names of the columns, as they stand there. Raises Refused."""
        csv.field_size_limit(BLOCK_BYTES)
        lines = self.bytes().text_lines(BLOCK_BYTES + 1, "strict")
        try:
            return next(filter(None, csv.reader(lines, delimiter=self.delimiter)))
        except StopIteration:
            raise Refused("holds no rows", "name a file with a table in it", self.source.path) from None
        except UnicodeDecodeError:
            self._refuse_bytes()
        except csv.Error:
            self._refuse_length(f"{self.source.path}, line 1")

    def _reader(self, content: ByteStream, types: dict[str, pa.DataType], columns: Sequence[str]) -> Any:
        return pyarrow.csv.open_csv(
            content,
            pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(columns) or None),
        )

    def _refuse(self, error: pa.ArrowInvalid, rows: int) -> NoReturn:
        said = str(error).splitlines()[0]
        if odd := _ODD_ROW.match(said):
            columns = "column" if odd["found"] == "1" else "columns"
            raise Refused(
                f"has {odd['found']} {columns}, and the header {odd['expected']}",
                "repair the line, or leave it out",
                # The header counts as row 1.
                self._place(int(odd["row"]) - 2),
            ) from None
        if "UTF8" in said or "UTF-8" in said:
            self._refuse_bytes()
        if "straddling" in said:
            self._refuse_length(self._place(rows))
        if "Empty CSV" in said:
            raise Refused("holds no rows", "name a file with a table in it", self.source.path) from None
        raise Refused(f"cannot be read as CSV: {said}", "repair it, or name another") from None

    def _refuse_length(self, where: str) -> NoReturn:
        raise Refused(
            f"begins a row of more than {BLOCK_BYTES >> 20} MB",
            "a quotation mark that is never closed makes such a row: close it, or leave the line out",
            where,
        ) from None

    def _refuse_bytes(self) -> NoReturn:
        """The line of the first byte that is no UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        content, line = self.bytes(), 1
        while part := content.read(BLOCK_BYTES):
            try:
                decoder.decode(part)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                refuse_encoding(f"{self.source.path}, line {line:,}", error.object[error.start])
            line += part.count(b"\n")
        raise Refused("is no UTF-8", "write it again as UTF-8", self.source.path)

    def _place(self, row: int) -> str:
        """Where the row with this number, counted from 0 behind the header, begins in the file."""
        lines = self.lines_of([row]) if row <= _SCANNED_ROWS else {}
        return f"{self.source.path}, line {lines[row]:,}" if row in lines else f"{self.source.path}, row {row + 1:,}"

    def lines_of(self, rows: Sequence[int]) -> dict[int, int]:
        """The lines in which these rows begin; lines are more than rows where a value holds a newline, or a line is
        empty."""
        csv.field_size_limit(BLOCK_BYTES)
        wanted, found, row = set(rows), {}, -1
        reader, before = csv.reader(self.bytes().text_lines(BLOCK_BYTES + 1), delimiter=self.delimiter), 0
        try:
            for fields in reader:
                row += bool(fields)
                if fields and row - 1 in wanted:
                    found[row - 1] = before + 1
                    if len(found) == len(wanted):
                        break
                before = reader.line_num
        except csv.Error:
            # A row of more than a block: it begins where the one before ended.
            found.setdefault(row, before + 1)
        return found


def read(source: Source) -> Reading:
    """The sample of a CSV file whose first row has the names. Raises Refused."""
    beginning = first_bytes(source.content())
    is_by_tabs = ".tsv" in source.path.lower()[-8:]
    delimiter = "\t" if is_by_tabs else _delimiter(beginning)
    file = _File(source, delimiter)
    header = file.header()
    names = table_types.named(header)
    input_rows, newlines = yield from _counted(file, header)
    blocks = chosen_blocks(input_rows, source.rows)
    texts = yield from _texts(file, header, blocks, input_rows)
    is_a_row_a_line = newlines == input_rows + 1

    def lines(places: Sequence[int]) -> dict[int, int]:
        rows = {place: sampling.row_at(blocks, place) for place in places}
        if is_a_row_a_line:
            return {place: row + 2 for place, row in rows.items()}
        found = file.lines_of([row for row in rows.values() if row <= _SCANNED_ROWS])
        return {place: found[row] for place, row in rows.items() if row in found}

    typed: list[pa.ChunkedArray] = []
    misfits: list[Misfit] = []
    for name in names:
        column = texts.pop(0)
        typed.append(inferred(column))
        if pt.is_string(typed[-1].type) and (misfit := first_misfit(name, column)) is not None:
            misfits.append(misfit)
        yield input_rows
    table = pa.table(typed, names=names)
    return Found(
        input_rows,
        blocks,
        table_types.kept_schema(table.schema),
        as_batches(_as_kept(table)),
        misfit_remarks(misfits, lines),
    )


def _as_kept(table: pa.Table) -> pa.Table:
    return table.cast(table_types.kept_schema(table.schema))


def _delimiter(beginning: bytes) -> str:
    """The delimiter that stands most often in the first line, outside of quotes; a comma where none does."""
    line = re.sub(rb'"[^"]*"', b"", beginning).split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(_DELIMITERS, key=line.count)


def _counted(file: _File, header: Sequence[str]) -> Generator[int, None, tuple[int, int]]:
    """How many rows there are, and how many lines."""
    content, rows = file.bytes(), 0
    for batch in file.batches(content, {header[0]: pa.binary()}, header[:1]):
        rows += batch.num_rows
        yield rows
    return rows, content.newlines + (content.last not in (b"\n", b""))


def _texts(
    file: _File, header: Sequence[str], blocks: Sequence[sampling.Block], input_rows: int
) -> Generator[int, None, list[pa.ChunkedArray]]:
    """The columns of the sample, as the text that stands there. How many rows there are is said again for each block: a
    word now and then is what keeps the process from being ended."""
    parts: list[list[pa.Array]] = [[] for _ in header]
    start = 0
    kind = pa.string() if len(header) <= _FEW_COLUMNS else pa.dictionary(pa.int32(), pa.string())
    for batch in file.batches(file.bytes(), dict.fromkeys(header, kind), header):
        for block in sampling.overlaps(blocks, start, batch.num_rows):
            # A slice alone would keep the whole batch in memory.
            own = batch.take(pa.array(np.arange(block.start, block.end)))
            for column, array in zip(parts, own.columns, strict=True):
                column.append(array if kind == pa.string() else array.dictionary_decode())
        start += batch.num_rows
        yield input_rows
    if start < blocks[-1].end:
        raise Refused("was changed while it was read", "try again", file.source.path)
    return [pa.chunked_array(column, pa.string()) for column in parts]
