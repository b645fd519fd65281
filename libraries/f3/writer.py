"""Write F3 files.

Rows arrive as Arrow data and become EncUnits, the smallest parts of a column that can be decoded. EncUnits of a column
are collected in an IOUnit, which is written as soon as it is full. So memory holds only the open IOUnits and, for
columns with a shared dictionary, the indices and distinct values of the open scope (the rows that share a dictionary).
Memory does not grow with the size of row groups.

`libraries.f3.encodings.coders` turns arrays into payloads, the encoded bytes. This module decides where in the file
each payload is stored (specification sections 1, 4 and 9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from numbers import Integral
from types import TracebackType
from typing import Literal

import pyarrow as pa
import xxhash

from libraries.f3.columns import dictionaries
from libraries.f3.columns.memory_layout import TEXT, shape_of
from libraries.f3.columns.shredding import Node, Piece, node_of, rows_alone, shred
from libraries.f3.columns.utf8_check import check_texts
from libraries.f3.container import io, metadata, zones
from libraries.f3.container.compression import ADAPTIVE, CODECS
from libraries.f3.container.layout import Postscript
from libraries.f3.container.metadata import Chunk, EncUnit, RowGroup, Section
from libraries.f3.container.output import Output
from libraries.f3.container.units import MOST_UNIT_ROWS
from libraries.f3.encodings.coders import Coding, default_coding
from libraries.f3.encodings.unit_encoder import MOST_UNIT_BYTES, UnitEncoder
from libraries.f3.errors import F3Error, Placed

ROWS_PER_UNIT = 65_536
UNIT_BYTES = 8 * 1024 * 1024
SCOPE_ROWS = 16 * ROWS_PER_UNIT
_MOST_GROUP_ROWS = 2**31
_MOST_METADATA_BYTES = 2**32 - 1
_UNIT_DECODED_BYTES = 9 << 17
"""Maximum bytes of a decoded EncUnit: 1 MiB and an eighth. Larger EncUnits are split, because reading one row may
decode the whole EncUnit. The eighth is for the bitmap of nulls, so that 65,536 decimals of 16 bytes stay one unit."""
_TEXT_DECODED_BYTES = 1 << 18
"""Maximum bytes of a decoded EncUnit of strings. The limit is smaller than for other types, because reading one string
may decode the symbols or the zstd frame of its whole unit. Units are not split if their distinct strings take less than
a quarter of this limit: each part would store the distinct strings again, and single rows can be read by their
codes."""
_BLOCK_ROWS = 1024
"""Number of values that bit packing handles as one block. Where possible, units are split at multiples of this
number."""
_BLOCK_BYTES = 1 << 24
"""Maximum bytes of a column that are joined, and searched for repetitions, at a time."""
_PENDING_BYTES, _PENDING_COLUMN_BYTES = 1 << 26, 1 << 16
"""Rows that do not fill a unit are written early if their bytes exceed both limits: the first number, and the second
number times the number of columns."""
_MOST_ENTRIES, _MOST_ENTRY_BYTES = 1 << 17, 1 << 23
"""Limits of entries and bytes of a shared dictionary if `dictionary` is 'best'. A reader holds the whole dictionary to
read one row."""
DICTIONARIES = ("none", "local", "shared", "best")
Scope = Literal["none", "local", "shared", "best"]
Codec = Literal["adaptive", "zstd", "lz4"] | None


def write(
    data: pa.Table | pa.RecordBatch | pa.RecordBatchReader,
    path: io.Location,
    *,
    rows_per_unit: int = ROWS_PER_UNIT,
    unit_bytes: int = UNIT_BYTES,
    row_group_rows: int | None = None,
    codec: Codec = ADAPTIVE,
    checksums: bool = False,
    dictionary: Scope = "best",
    scope_rows: int = SCOPE_ROWS,
    coding: Coding | None = None,
) -> None:
    """Write a table, a record batch or a stream of batches as one file. The parameters are those of `Writer`.

    Raises F3Error if the data cannot be stored and OSError if the file cannot be written. In both cases no new file
    appears.
    """
    if not isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        raise F3Error(
            f"data must be an Arrow table, record batch or stream of batches (got {type(data).__name__}); "
            "pa.table(...) makes a table"
        )
    writer = Writer(
        path,
        data.schema,
        rows_per_unit=rows_per_unit,
        unit_bytes=unit_bytes,
        row_group_rows=row_group_rows,
        codec=codec,
        checksums=checksums,
        dictionary=dictionary,
        scope_rows=scope_rows,
        coding=coding,
    )
    with writer:
        if isinstance(data, pa.Table):
            writer.write_table(data)
        elif isinstance(data, pa.RecordBatch):
            writer.write_batch(data)
        else:
            for batch in data:
                writer.write_batch(batch)


class Writer:
    """Write one file piece by piece. Use it in a `with` block, whose end completes the file.

    The file gets its final name only when it is complete. A local file is synced to the disk before that. After an
    error in the block, or a crash, an existing file of that name is unchanged. The exception is an OSError from syncing
    the folder, which is the last step: the new file then has the name, but may lose it in a power cut.

    For a URL, the file system of fsspec decides when the file is durable.
    """

    def __init__(
        self,
        path: io.Location,
        schema: pa.Schema,
        *,
        rows_per_unit: int = ROWS_PER_UNIT,
        unit_bytes: int = UNIT_BYTES,
        row_group_rows: int | None = None,
        codec: Codec = ADAPTIVE,
        checksums: bool = False,
        dictionary: Scope = "best",
        scope_rows: int = SCOPE_ROWS,
        coding: Coding | None = None,
    ) -> None:
        """Open the file.

        Args:
            path: a path, a URL that fsspec supports, or a file opened for writing (it stays open)
            schema: schema of all batches
            rows_per_unit: rows of an EncUnit, the smallest part that can be decoded
            unit_bytes: write an IOUnit (EncUnits of a column that are written together) when it exceeds this size
            row_group_rows: rows of a row group; None: a single row group
            codec: compress each EncUnit, in addition to its encoding; 'adaptive': with zstd, where zstd saves a fifth
            checksums: store a checksum of each IOUnit; file and schema always have one
            dictionary: 'none': no separate dictionaries, but an encoding may use one inside a unit; 'local': one
                dictionary per unit; 'shared': one for all units of a scope (`scope_rows` rows) and for columns with the
                same values; 'best': 'none' or 'shared' for each column, whichever makes the first unit smaller
            scope_rows: rows that share a dictionary; memory holds the indices and distinct values of these rows
            coding: an object that encodes instead of this package (`encodings.coders.Coding`)

        Raises:
            F3Error: a type cannot be stored, or a parameter is invalid
            OSError: the file cannot be written
        """
        self._rows_per_unit = _checked("rows_per_unit", rows_per_unit, MOST_UNIT_ROWS)
        unit_bytes = _checked("unit_bytes", unit_bytes, MOST_UNIT_BYTES - 1)
        group_rows = _MOST_GROUP_ROWS if row_group_rows is None else row_group_rows
        self._row_group_rows = _checked("row_group_rows", group_rows, _MOST_GROUP_ROWS)
        self._scope_rows = _checked("scope_rows", scope_rows, 2**31)
        if not isinstance(schema, pa.Schema):
            raise F3Error(f"schema must be an Arrow schema (got {type(schema).__name__}); pa.schema(...) makes one")
        codecs = (ADAPTIVE, *CODECS)
        if codec not in codecs:
            raise F3Error(f"codec must be one of {', '.join(map(repr, codecs))} (got {codec!r})")
        if dictionary not in DICTIONARIES:
            raise F3Error(f"dictionary must be one of {', '.join(map(repr, DICTIONARIES))} (got {dictionary!r})")
        self._schema = schema
        self._nodes: list[Node] = []
        first = 0
        for field in schema:
            self._nodes.append(node_of(field, first))
            first = self._nodes[-1].numbers.stop
        self._scope = dictionary
        self._encoder = UnitEncoder(default_coding() if coding is None else coding, codec)
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = 0
        self._open_scope_rows = 0
        self._group_rows = self._closed_rows = 0
        self._group_start = 0
        self._groups: list[tuple[int, Section, list[bytes]]] = []
        self._dictionary_chunks: list[Chunk] = []
        self._shared: list[tuple[pa.DataType, tuple[int, ...]]] = []
        self._zones = zones.ZoneWriter(schema)
        self._out = Output(io.open_target(path), checksums=checksums)
        nodes = [each for node in self._nodes for each in node.walk()]
        widths = [_fixed_width(node) for node in self._nodes]
        self._fixed_bytes = sum(widths)
        self._others = [place for place, width in enumerate(widths) if not width]
        flat = {node.column for node in self._nodes if not node.children}
        self._columns = [_Column(node, self._out, self._encoder, unit_bytes, node.column in flat) for node in nodes]

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._out.abort()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append a record batch. Raises F3Error like `write_table`."""
        if not isinstance(batch, pa.RecordBatch):
            raise F3Error(f"batch must be an Arrow record batch (got {type(batch).__name__})")
        self.write_table(pa.Table.from_batches([batch]))

    def write_table(self, table: pa.Table) -> None:
        """Append a table.

        Raises F3Error if the table's columns are not those of the file, or if values cannot be stored. After an error
        in the values nothing more can be written, because some columns already have rows that others lack.
        """
        if not isinstance(table, pa.Table):
            raise F3Error(f"table must be an Arrow table (got {type(table).__name__})")
        if not table.schema.equals(self._schema):
            raise F3Error(_difference(table.schema, self._schema))
        if self._out.done:
            raise F3Error("no rows can be added: the file is complete, or was given up after an error")
        # Small tables are collected until they fill a unit, because callers may append thousands of single rows.
        self._wait(table)
        if not self._must_write():
            return
        try:
            rows = self._took_pending()
            done = 0
            while rows.num_rows - done >= self._next_unit_rows():
                count = self._next_unit_rows()
                self._write_unit(rows.slice(done, count))
                done += count
            # Pass the length, because pyarrow (26) slices a table without columns wrongly if it is omitted.
            self._wait(rows.slice(done, rows.num_rows - done))
            if self._must_write():
                self._write_unit(self._took_pending())
        except BaseException:
            self._out.abort()
            raise

    def _must_write(self) -> bool:
        """Return whether the collected rows have to be written now, because they fill a unit or take much memory."""
        if self._pending_rows >= self._next_unit_rows():
            return True
        return self._pending_bytes > max(_PENDING_BYTES, _PENDING_COLUMN_BYTES * len(self._columns))

    def _wait(self, rows: pa.Table) -> None:
        """Keep rows until they fill a unit."""
        if rows.num_rows:
            self._pending.append(rows)
            self._pending_rows += rows.num_rows
            self._pending_bytes += rows.num_rows * self._fixed_bytes
            self._pending_bytes += sum(rows.column(place).nbytes for place in self._others)

    def _took_pending(self) -> pa.Table:
        pending, count = self._pending, self._pending_rows
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        return pa.concat_tables(pending) if self._nodes else rows_alone(self._schema, count)

    def close(self) -> None:
        """Complete the file. Without this call, or after an error, no file appears."""
        if self._out.done:
            return
        try:
            if self._pending_rows:
                self._write_unit(self._took_pending(), is_last=True)
            if self._group_rows or not self._groups:
                self._close_group()
            self._finish()
        except BaseException:
            self._out.abort()
            raise
        self._out.commit()

    def _next_unit_rows(self) -> int:
        """Return the number of rows of the next unit. A unit ends at the latest where the row group or the dictionary
        scope ends."""
        left = self._row_group_rows - self._group_rows
        if self._scope in ("shared", "best"):
            left = min(left, self._scope_rows - self._open_scope_rows)
        return min(self._rows_per_unit, left)

    def _write_unit(self, table: pa.Table, *, is_last: bool = False) -> None:
        """Write rows as one unit per column. A column whose unit would decode to too many bytes gets several units."""
        first_row = self._closed_rows + self._group_rows
        for node, column in zip(self._nodes, table.columns, strict=True):
            # A unit of lists and the unit of their items have the same ordinal, so all parts of a nested column are cut
            # at the same rows. Flat columns are cut later, when it is known whether they have a dictionary.
            row = first_row
            for part in _parts(node, column, _UNIT_DECODED_BYTES if node.children else _BLOCK_BYTES):
                rows = _contiguous(part)
                for piece in shred(node, rows):
                    check_texts(node, piece, rows, row)
                    self._columns[piece.node.column].add(piece, self._scope)
                row += len(rows)
        self._zones.add(table, is_last=is_last)
        self._group_rows += table.num_rows
        self._open_scope_rows += table.num_rows
        if self._open_scope_rows == self._scope_rows:
            self._close_scope()
        if self._group_rows == self._row_group_rows:
            self._close_group()

    def _close_scope(self) -> None:
        """End a scope: build its dictionaries, and write the columns whose values were kept for these dictionaries."""
        shared: list[tuple[_Column, dictionaries.Dictionary]] = []
        for column in self._columns:
            built = column.dictionary(always=self._scope == "shared")
            if built is not None:
                shared.append((column, built))
        placed = dictionaries.share([built for _, built in shared])
        for (column, _), built, parts in zip(shared, placed.dictionaries, placed.made_of, strict=True):
            column.write_indices(built.indices, len(self._shared))
            self._shared.append((built.values.type, tuple(len(self._dictionary_chunks) + part for part in parts)))
        for part in placed.parts:
            self._write_dictionary(part)
        self._encoder.forget()
        self._open_scope_rows = 0

    def _close_group(self) -> None:
        self._close_scope()
        for column in self._columns:
            column.flush()
        described = [metadata.packed_column(column.taken()) for column in self._columns]
        data = Section(self._group_start, self._out.position - self._group_start)
        self._groups.append((self._group_rows, data, described))
        self._group_start = self._out.position
        self._closed_rows += self._group_rows
        self._group_rows = 0

    def _finish(self) -> None:
        """Write everything that follows the row groups, in the order of specification section 1."""
        optional = {metadata.WASM_SECTION: self._write_modules()}
        if self._zones.are_useful:
            optional[zones.SECTION] = self._out.write(self._zones.packed())
        metadata_start = self._out.position
        groups = []
        for rows, data, described in self._groups:
            columns = [self._out.write(packed) for packed in described]
            groups.append(RowGroup(rows=rows, data=data, columns=columns))
        schema = _message(self._schema)
        footer = metadata.packed_footer(
            schema=schema,
            tree=metadata.LogicalTree(metadata.STRUCT, tuple(node.tree for node in self._nodes)),
            groups=groups,
            optional=optional,
            dictionary_chunks=self._dictionary_chunks,
            dictionary_positions=[parts for _, parts in self._shared],
            dictionary_schema=_message(pa.schema([pa.field("", kind, nullable=False) for kind, _ in self._shared])),
        )
        self._out.write(footer)
        metadata_bytes = self._out.position - metadata_start
        if metadata_bytes > _MOST_METADATA_BYTES:
            most = f"a file can have at most {_MOST_METADATA_BYTES}"
            raise F3Error(f"{metadata_bytes} bytes of metadata are too many ({most}); raise rows_per_unit")
        postscript = Postscript(metadata_bytes, len(footer), self._out.checksum(), xxhash.xxh64_intdigest(schema))
        self._out.write(postscript.packed())

    def _write_dictionary(self, part: pa.Array) -> None:
        """Write a part of a shared dictionary. This happens as soon as the scope ends, so that memory never holds the
        dictionaries of all scopes."""
        unit, stored = self._encoder.unit(part)
        place, checksum = self._out.write_unit([stored])
        self._dictionary_chunks.append(
            Chunk(place.offset, place.size_bytes, len(part), metadata.NO_DICTIONARY, (unit,), checksum=checksum)
        )

    def _write_modules(self) -> Section:
        """Write the modules and their directory. Return the directory's byte range."""
        placed = [self._out.write(code) for code in self._encoder.used_modules()]
        return self._out.write(metadata.packed_modules(placed))


class _Column:
    """A physical column (a flat column, or a flat part of a nested one) in the current row group: its open IOUnit, and
    the IOUnits already written."""

    def __init__(self, node: Node, out: Output, encoder: UnitEncoder, unit_bytes: int, alone: bool) -> None:
        """Open the first IOUnit. `alone` is True if the column is not part of a nested column. Units of such a column
        may end at any row."""
        self._node, self._out, self._encoder, self._unit_bytes = node, out, encoder, unit_bytes
        self._alone = alone
        is_text = not node.children and shape_of(node.type).kind == TEXT
        self._most_bytes = _TEXT_DECODED_BYTES if is_text else _UNIT_DECODED_BYTES
        self._growing: dictionaries.Growing | None = None
        self._declined = False
        self._chunks: list[Chunk] = []
        self._open(metadata.NO_DICTIONARY, None)

    def _open(self, scope: int, dictionary: int | None) -> None:
        self._scope, self._dictionary = scope, dictionary
        self._units: list[EncUnit] = []
        self._stored: list[bytes] = []
        self._stored_bytes = 0
        self._rows = 0

    def add(self, piece: Piece, scope: Scope) -> None:
        """Append the values of a unit, or keep them until their dictionary is built. Raises F3Error if one row has more
        items than a unit can hold."""
        if len(piece.values) > MOST_UNIT_ROWS:
            many = f"a row has {len(piece.values)} items; an EncUnit holds at most {MOST_UNIT_ROWS}"
            raise F3Error(f"column {self._node.what}: {many}")
        scoped = piece.offsets is None and dictionaries.has_dictionaries(piece.values.type)
        if scope == "local" and scoped:
            self._write_local(piece.values)
        elif scope == "none" or not scoped or not self._keep(piece.values, always=scope == "shared"):
            self._write(piece)

    def _keep(self, values: pa.Array, *, always: bool) -> bool:
        """Keep values until their dictionary is built. Return False if the caller has to write these values instead.

        If the dictionary becomes too large or, unless `always`, would not make the column smaller, the values kept so
        far are written without a dictionary. No later values are kept then.
        """
        if self._declined:
            return False
        if self._growing is None:
            if not always and not dictionaries.may_pay(values):
                self._declined = True
                return False
            limits = (MOST_UNIT_ROWS, MOST_UNIT_BYTES - 1) if always else (_MOST_ENTRIES, _MOST_ENTRY_BYTES)
            self._growing = dictionaries.Growing(values.type, *limits)
        is_kept = self._growing.add(values)
        if not is_kept or (not always and self._growing.is_useless):
            self._decline()
        return is_kept

    def _decline(self) -> None:
        """Write the kept values without a dictionary. Values that follow in this scope get no dictionary either."""
        self._declined = True
        growing, self._growing = self._growing, None
        assert growing is not None
        built = growing.dictionary()
        for indices in built.indices:
            values = (
                dictionaries.looked_up(built.values, indices) if len(built.values) else indices.cast(built.values.type)
            )
            self._write(Piece(self._node, values))

    def dictionary(self, *, always: bool) -> dictionaries.Dictionary | None:
        """End the scope, and return the dictionary of the kept values. None means that no values wait for a dictionary.

        If the dictionary would not make the column smaller, the kept values are written without it, unless `always`.
        """
        growing = self._growing
        built = None
        if growing is not None:
            built = growing.dictionary()
            with self._named():
                if not always and not dictionaries.pays(built, self._encoder.size_of, self._encoder.kept_size_of):
                    built = None
                    self._switch(metadata.NO_DICTIONARY, None)
                    self._decline()
        self._growing, self._declined = None, False
        return built

    def write_indices(self, indices: Sequence[pa.Array], dictionary: int) -> None:
        """Write the kept values as indices into a shared dictionary."""
        self._switch(metadata.SHARED_DICTIONARY, dictionary)
        for each in indices:
            self._write(Piece(self._node, each))
        self._switch(metadata.NO_DICTIONARY, None)

    def flush(self) -> None:
        if self._units:
            place, checksum = self._out.write_unit(self._stored)
            units = tuple(self._units)
            self._chunks.append(
                Chunk(place.offset, place.size_bytes, self._rows, self._scope, units, self._dictionary, (), checksum)
            )
        self._open(self._scope, self._dictionary)

    def taken(self) -> list[Chunk]:
        """Return and forget the IOUnits of the row group that ends here."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def _switch(self, scope: int, dictionary: int | None) -> None:
        """Start a new IOUnit if the scope changes, because all units of an IOUnit have the same scope."""
        if (scope, dictionary) != (self._scope, self._dictionary):
            self.flush()
            self._open(scope, dictionary)

    def _write(self, piece: Piece) -> None:
        if piece.offsets is not None:
            with self._named():
                self._append(len(piece.values), self._encoder.list_unit(piece.values, piece.offsets))
            return
        most_bytes = self._most_bytes
        if (
            self._alone
            and piece.values.nbytes > most_bytes
            and dictionaries.repeats_much(piece.values, most_bytes // 4)
        ):
            most_bytes = _BLOCK_BYTES
        parts = list(self._cut(piece.values, most_bytes))
        with self._named():
            units = self._encoder.units(parts)
        for part, unit in zip(parts, units, strict=True):
            self._append(len(part), unit)

    def _write_local(self, values: pa.Array) -> None:
        self._switch(metadata.LOCAL_DICTIONARY, None)
        for part in self._cut(values, _UNIT_DECODED_BYTES):
            built = dictionaries.build([part])
            with self._named():
                self._append(len(part), self._encoder.unit(built.values), self._encoder.unit(built.indices[0]))

    def _cut(self, values: pa.Array, most_bytes: int) -> Iterator[pa.Array]:
        """Yield values in parts that decode to about `most_bytes` at most. Values of a nested column stay together,
        because the units of all its flat parts have to end at the same rows."""
        rows = len(values)
        if not self._alone or rows < 2 or values.nbytes <= most_bytes:
            yield values
            return
        step = max(rows * most_bytes // values.nbytes, 1)
        if step > _BLOCK_ROWS:
            step -= step % _BLOCK_ROWS
        for start in range(0, rows, step):
            part = values.slice(start, step)
            if part.nbytes > 2 * most_bytes:
                yield from self._cut(part, most_bytes)
            else:
                yield part

    def _append(self, rows: int, *encoded: tuple[EncUnit, bytes]) -> None:
        """Append the units of some rows, and write the IOUnit if it is full."""
        for unit, stored in encoded:
            self._units.append(unit)
            self._stored.append(stored)
            self._stored_bytes += len(stored)
        self._rows += rows
        if self._stored_bytes > self._unit_bytes:
            self.flush()

    def _named(self) -> Placed:
        return Placed(f"column {self._node.what}")


def _parts(node: Node, column: pa.ChunkedArray, most_bytes: int) -> Iterator[pa.ChunkedArray]:
    """Divide the rows of a column into parts of at most `most_bytes` that also fit into units. A part of a single row
    may be larger."""
    width = _fixed_width(node)
    if len(column) > 1 and (not width or len(column) * width > most_bytes) and not _fits(node, column, most_bytes):
        half = _half(len(column))
        yield from _parts(node, column.slice(0, half), most_bytes)
        yield from _parts(node, column.slice(half), most_bytes)
    else:
        yield column


def _fixed_width(node: Node) -> int:
    """Return the number of bytes of a value; 0 for strings, whose length varies, and for nested columns."""
    if node.children:
        return 0
    shape = shape_of(node.type)
    return 0 if shape.kind == TEXT else max(shape.width_bytes, 1)


def _fits(node: Node, column: pa.ChunkedArray, most_bytes: int) -> bool:
    """Return whether the rows fit into one part. Chunks are counted one by one, to avoid joining them."""
    if column.nbytes > most_bytes:
        return False
    items: Counter[int] = Counter()
    for chunk in column.chunks if node.children else ():
        for piece in shred(node, chunk):
            items[piece.node.column] += len(piece.values)
    return max(items.values(), default=0) <= MOST_UNIT_ROWS


def _half(rows: int) -> int:
    """Return about half of `rows`. A half that has a block of bit packing or more is rounded down to whole blocks."""
    half = rows // 2
    return half if half < _BLOCK_ROWS else half - half % _BLOCK_ROWS


def _contiguous(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _message(schema: pa.Schema) -> bytes:
    """Return the schema as files store it: an IPC message without the usual 8-byte prefix."""
    return bytes(schema.serialize()[8:].to_pybytes())


def _difference(new: pa.Schema, stored: pa.Schema) -> str:
    """Return the first difference between the columns of new rows and those of the file, which differ."""
    if len(new) != len(stored):
        return f"the new rows must have {len(stored)} columns, as the file has (got {len(new)})"
    number = next(number for number in range(len(new)) if not new.field(number).equals(stored.field(number)))
    given, needed = _described(new.field(number)), _described(stored.field(number))
    return f"column {number} of the new rows, counted from 0, must be {needed}, as in the file (got {given})"


def _described(field: pa.Field) -> str:
    return f"{field.name}: {field.type}{'' if field.nullable else ' not null'}"


def _checked(name: str, value: int, most: int) -> int:
    """Check a parameter and return it as a Python int, because counting rows with numpy's integers could overflow.
    Raises F3Error."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise F3Error(f"{name} must be a whole number (got {value!r:.60})")
    if not 1 <= value <= most:
        raise F3Error(f"{name} must be between 1 and {most} (got {value})")
    return int(value)
