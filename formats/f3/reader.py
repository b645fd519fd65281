"""Reading F3 files: which bytes hold what is asked for, and Arrow tables from them.

Opening looks at the end of the file alone, and a projection at the metadata of its columns alone. A file is a stranger's:
every count is checked against the others before it is used, and every fault is an F3Error. How payloads become arrays is
the business of `formats.f3.coders`; the specification's sections 4 and 10 say how they belong together.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import Literal

import numpy as np
import pyarrow as pa
import xxhash

from formats.f3 import framing, io, metadata, shredding
from formats.f3.coders import Coding, Decoder, default_coding
from formats.f3.compression import CODECS, decompress
from formats.f3.dictionaries import index_type, looked_up
from formats.f3.errors import F3Error
from formats.f3.layout import POSTSCRIPT_BYTES, read_postscript
from formats.f3.metadata import Chunk, EncUnit, Footer
from formats.f3.shredding import Node

Verify = Literal["units", "file", "none"]
Prefer = Literal["native", "wasm"]
Rows = slice | range | Sequence[int] | np.ndarray

_END_BYTES = 64 * 1024
_AT_ONCE_BYTES = 32 * 1024 * 1024
_MOST_UNIT_ROWS = 2**24
_CODEC_NAMES = {number: name or "none" for name, number in CODECS.items()}


@dataclass(frozen=True)
class ModuleInfo:
    """One embedded module: its place among them, its size, and its XXH64."""

    wasm_id: int
    size_bytes: int
    xxh64: int


@dataclass(frozen=True)
class ColumnInfo:
    """What one physical column is stored as, over all row groups; rows are those of the column."""

    name: str
    type: str
    rows: int
    io_units: int
    enc_units: int
    size_bytes: int
    scopes: tuple[str, ...]
    codecs: tuple[str, ...]
    modules: tuple[int, ...]


@dataclass(frozen=True)
class FileInfo:
    """What a file holds, and how."""

    size_bytes: int
    rows: int
    row_groups: int
    columns: tuple[ColumnInfo, ...]
    modules: tuple[ModuleInfo, ...]
    shared_dictionaries: int
    checksums: bool

    @property
    def codecs(self) -> tuple[str, ...]:
        """All codecs over EncUnits: 'none', 'zstd', 'lz4'."""
        return tuple(sorted({codec for column in self.columns for codec in column.codecs}))


def open_file(
    path: io.Location, *, verify: Verify = "units", prefer: Prefer = "native", coding: Coding | None = None
) -> File:
    """Open an F3 file: a path, a URL that fsspec knows, or a file opened for reading (which is not closed).

    Args:
        verify: 'units': the checksums of IOUnits that are read, where the file has them; 'file': the whole file, now;
            'none': nothing
        prefer: whether code that this package has natively is used instead of the file's own ('native'), or not ('wasm')
        coding: decoders other than this package's own

    Raises F3Error for what is no F3 file or a broken one, and OSError where it cannot be read.
    """
    if verify not in ("units", "file", "none"):
        raise F3Error(f"verify: {verify!r} is none of 'units', 'file', 'none'")
    if prefer not in ("native", "wasm"):
        raise F3Error(f"prefer: {prefer!r} is none of 'native', 'wasm'")
    source = io.open_source(path)
    try:
        return File(source, verify, prefer, default_coding() if coding is None else coding)
    except BaseException as error:
        source.close()
        if isinstance(error, F3Error):
            raise F3Error(f"{source.name}: {error}") from None
        raise


class File:
    """One open file, made by `open_file`; closes itself at the end of a `with` block. Threads may share it."""

    def __init__(self, source: io.Source, verify: Verify, prefer: Prefer, coding: Coding) -> None:
        """Read the end of the file. Raises F3Error."""
        self._source, self._verify, self._prefer, self._coding = source, verify, prefer, coding
        end_bytes = min(source.size_bytes, _END_BYTES)
        end = source.read(source.size_bytes - end_bytes, end_bytes)
        postscript = read_postscript(bytes(end[-POSTSCRIPT_BYTES:]), source.size_bytes)
        if verify == "file":
            self._verify_file(postscript.data_checksum)
        self._footer_start = source.size_bytes - POSTSCRIPT_BYTES - postscript.footer_bytes
        self._metadata_start = source.size_bytes - POSTSCRIPT_BYTES - postscript.metadata_bytes
        held = end_bytes - POSTSCRIPT_BYTES
        if postscript.footer_bytes <= held:
            footer = end[held - postscript.footer_bytes : held]
        else:
            footer = source.read(self._footer_start, postscript.footer_bytes)
        self._footer = Footer(footer)
        if verify == "file" and xxhash.xxh64_intdigest(self._footer.schema) != postscript.schema_checksum:
            raise F3Error("the schema is not what its checksum says")
        self.schema = _schema(self._footer.schema)
        self._group_starts = np.concatenate(([0], np.cumsum(np.asarray(self._footer.row_counts, np.int64))))
        self.num_rows = int(self._group_starts[-1])
        self._check_edges()
        self._lock = threading.RLock()
        self._nodes: dict[int, Node] = {}
        self._units: dict[tuple[int, int], _Stored] = {}
        self._sections: list[metadata.Section] | None = None
        self._decoders: dict[int, Decoder] = {}
        self._dictionaries: dict[tuple[int, pa.DataType], pa.Array] = {}
        self._dictionary_types: pa.Schema | None = None

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back; tables that were read stay."""
        self._source.close()

    def read(self, columns: Sequence[str] | None = None, rows: Rows | None = None) -> pa.Table:
        """The rows of some columns.

        Args:
            columns: names of top-level columns, in the order that is wanted; None: all
            rows: a slice, a range or row numbers in any order; None: all

        Only the EncUnits that hold them are decoded. Raises F3Error for unknown columns and rows, and for broken files.
        """
        with self._placed():
            chosen = self._chosen(columns)
            picked = self._picked(rows)
            schema = pa.schema([self.schema.field(place) for place in chosen], self.schema.metadata)
            if not chosen:
                return _rows_alone(schema, picked.count)
            plan = self._plan([self._node(place) for place in chosen], picked)
            made = [pa.chunked_array(arrays, field.type) for arrays, field in zip(plan.arrays(), schema, strict=True)]
            return pa.Table.from_arrays(made, schema=schema)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows of some columns, some units at a time: what is held are the IOUnits that a batch lies in.

        Raises F3Error like `read`, when the batch is due.
        """
        with self._placed():
            chosen = self._chosen(columns)
            schema = pa.schema([self.schema.field(place) for place in chosen], self.schema.metadata)
            nodes = [self._node(place) for place in chosen]
        held: _Held = {}
        for group, count in enumerate(self._footer.row_counts):
            for start, stop in self._steps(nodes, group, count):
                with self._placed():
                    plan = self._plan(nodes, _Picked((group,), range(start, stop)))
                    held = plan.hold(held)
                    arrays = [plan.array_of(node, held) for node in nodes]
                    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                yield batch

    @property
    def modules(self) -> tuple[ModuleInfo, ...]:
        """The embedded modules, by id."""
        with self._placed():
            return tuple(
                ModuleInfo(wasm_id, section.size_bytes, xxhash.xxh64_intdigest(self._module(wasm_id)))
                for wasm_id, section in enumerate(self._module_sections())
            )

    def describe(self) -> FileInfo:
        """What the file holds, and how: walks over the metadata of all columns."""
        with self._placed():
            nodes = [each for place in range(len(self.schema)) for each in self._node(place).walk()]
            groups = tuple(range(len(self._footer.row_counts)))
            columns = []
            checksums = True
            for node in nodes:
                if node.pushed_down:
                    continue
                self._load(groups, [node.column])
                stored = [self._units[group, node.column] for group in groups]
                columns.append(_described(node, stored))
                checksums &= all(chunk.checksum is not None for each in stored for chunk in each.chunks)
        return FileInfo(
            size_bytes=self._source.size_bytes,
            rows=self.num_rows,
            row_groups=len(groups),
            columns=tuple(columns),
            modules=self.modules,
            shared_dictionaries=self._footer.dictionaries,
            checksums=checksums and bool(columns),
        )

    # --- opening ---------------------------------------------------------------------------------------------------

    def _placed(self) -> _Placed:
        return _Placed(self._source.name)

    def _verify_file(self, checksum: int) -> None:
        digest = xxhash.xxh64()
        for piece in io.pieces(self._source, self._source.size_bytes - POSTSCRIPT_BYTES):
            digest.update(piece)
        if digest.intdigest() != checksum:
            raise F3Error(f"the file is not what its checksum says: {checksum:016x}, found {digest.intdigest():016x}")

    def _check_edges(self) -> None:
        """The columns' metadata fill the space between what the postscript says and the footer."""
        groups = len(self._footer.row_counts)
        start = end = self._footer_start
        if self._footer.columns(0):
            start = self._footer.column(0, 0).offset
            last = self._footer.column(groups - 1, self._footer.columns(groups - 1) - 1)
            end = last.offset + last.size_bytes
        if start != self._metadata_start or end != self._footer_start:
            raise F3Error(
                f"metadata lie from {start} to {end}; the postscript says {self._metadata_start} to {self._footer_start}"
            )

    # --- columns and rows ------------------------------------------------------------------------------------------

    def _chosen(self, columns: Sequence[str] | None) -> list[int]:
        if columns is None:
            return list(range(len(self.schema)))
        if isinstance(columns, str):
            raise F3Error(f"columns: {columns!r} is a text; give a list of names")
        chosen = []
        for name in columns:
            places = self.schema.get_all_field_indices(name)
            if len(places) != 1:
                few = ", ".join(self.schema.names[:8]) + (", ..." if len(self.schema) > 8 else "")
                raise F3Error(f"{len(places) or 'no'} columns are called {name!r}; there are {few}")
            chosen.append(places[0])
        return chosen

    def _node(self, place: int) -> Node:
        with self._lock:
            if place not in self._nodes:
                if self._footer.columns(0) == len(self.schema):
                    # Then a column's place is its number, and 10,000 others need not be looked at.
                    self._nodes[place] = self._node_at(place, place)
                else:
                    first = 0
                    for each in range(len(self.schema)):
                        self._nodes[each] = self._node_at(each, first)
                        first += self._nodes[each].columns
            return self._nodes[place]

    def _node_at(self, place: int, column: int) -> Node:
        field = self.schema.field(place)
        if shredding.may_push_down(field.type):
            if self._footer.kind([place]) == metadata.LIST_OF_STRUCT_OF_PRIMITIVE:
                return shredding.pushed_down(field, column)
        return shredding.node_of(field, column)

    def _picked(self, rows: Rows | None) -> _Picked:
        wanted: range | np.ndarray
        if rows is None:
            wanted = range(self.num_rows)
        elif isinstance(rows, slice):
            wanted = range(self.num_rows)[rows]
        elif isinstance(rows, range):
            wanted = rows
        else:
            wanted = _row_numbers(rows)
        if isinstance(wanted, range) and wanted.step != 1:
            wanted = np.arange(wanted.start, wanted.stop, wanted.step, dtype=np.int64)
        if len(wanted) == 0:
            return _Picked((), range(0))
        lowest, highest = (
            (wanted[0], wanted[-1]) if isinstance(wanted, range) else (int(wanted.min()), int(wanted.max()))
        )
        if lowest < 0 or highest >= self.num_rows:
            raise F3Error(f"rows {lowest} to {highest} are asked of {self.num_rows}")
        return _in_groups(wanted, self._group_starts)

    def _steps(self, nodes: Sequence[Node], group: int, rows: int) -> Iterator[tuple[int, int]]:
        """Stretches of rows of a row group that begin where units begin: those of the column with the fewest."""
        if not nodes or rows == 0:
            return
        columns = [_first_column(node) for node in nodes]
        with self._placed():
            self._load((group,), columns)
            starts = min((self._units[group, column].starts for column in columns), key=len)
        edges = np.unique(starts)
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)

    # --- metadata of columns ---------------------------------------------------------------------------------------

    def _plan(self, nodes: Sequence[Node], picked: _Picked) -> _Plan:
        columns = [each.column for node in nodes for each in node.walk() if not each.pushed_down]
        self._load(picked.groups, columns)
        for node in nodes:
            self._check_rows(node, picked.groups)
        return _Plan(self, nodes, picked)

    def _load(self, groups: Sequence[int], columns: Sequence[int]) -> None:
        """Read the metadata of these columns, unless they were read before."""
        with self._lock:
            missing = [(group, column) for group in groups for column in columns if (group, column) not in self._units]
            spans: dict[tuple[int, int], tuple[int, int]] = {}
            for group, column in missing:
                section = self._footer.column(group, column)
                span = (section.offset, section.offset + section.size_bytes)
                if span[0] < self._metadata_start or span[1] > self._footer_start:
                    raise F3Error(f"the metadata of column {column}, row group {group} do not lie among the metadata")
                spans[group, column] = span
            if len(set(spans.values())) != len(spans):
                raise F3Error("two columns have the same metadata")
            found = io.read_spans(self._source, spans.values())
            for (group, column), span in spans.items():
                what = f"metadata of column {column}, row group {group}"
                chunks = metadata.read_column(found[span], what)
                self._units[group, column] = _stored(chunks, what, self._metadata_start)

    def _check_rows(self, node: Node, groups: Sequence[int]) -> None:
        """A row group's columns have as many rows as it has; what lies in lists is counted when they are read."""
        columns = [child.column for child in node.children] if node.pushed_down else [node.column]
        for group in groups:
            for column in columns:
                stored = self._units[group, column]
                if stored.rows != self._footer.row_counts[group]:
                    raise F3Error(
                        f"column {node.what} has {stored.rows} rows in row group {group}, "
                        f"which has {self._footer.row_counts[group]}"
                    )
        if node.is_struct:
            for child in node.children:
                self._check_rows(child, groups)

    # --- bytes and code --------------------------------------------------------------------------------------------

    def _module_sections(self) -> list[metadata.Section]:
        with self._lock:
            if self._sections is None:
                place = self._footer.optional_section(metadata.WASM_SECTION)
                if place is None:
                    self._sections = []
                else:
                    directory = self._source.read(place.offset, place.size_bytes)
                    self._sections = metadata.read_modules(directory) if place.size_bytes else []
            return self._sections

    def _module(self, wasm_id: int) -> bytes:
        sections = self._module_sections()
        if wasm_id >= len(sections):
            raise F3Error(f"module {wasm_id} is needed; the file holds {len(sections)}")
        section = sections[wasm_id]
        return bytes(self._source.read(section.offset, section.size_bytes))

    def _decoder(self, unit: EncUnit) -> Decoder:
        if unit.wasm_id is None:
            if unit.encoding == metadata.CASCADE:
                raise F3Error(
                    "is in the original's built-in encoding, and the file does not carry the code that reads it: "
                    "write it again with the original's write_built_in_wasm"
                )
            raise F3Error(f"is in encoding {unit.encoding} and names no module that reads it")
        with self._lock:
            if unit.wasm_id not in self._decoders:
                self._decoders[unit.wasm_id] = self._coding.Decoder(self._module(unit.wasm_id), prefer=self._prefer)
            return self._decoders[unit.wasm_id]

    def _fetched(self, spans: Mapping[_Key, tuple[Chunk, int, int]]) -> _Held:
        """The wanted stretch of each IOUnit; its checksum is verified where the whole of it is there."""
        found = io.read_spans(self._source, ((start, stop) for _, start, stop in spans.values() if stop > start))
        held: _Held = {}
        for key, (chunk, start, stop) in spans.items():
            data = found[start, stop] if stop > start else memoryview(b"")
            if self._verifies(chunk) and xxhash.xxh64_intdigest(data) != chunk.checksum:
                raise F3Error(f"the IOUnit at {chunk.offset} is not what its checksum says")
            held[key] = (start, data)
        return held

    def _verifies(self, chunk: Chunk) -> bool:
        return self._verify == "units" and chunk.checksum is not None

    # --- shared dictionaries ---------------------------------------------------------------------------------------

    def _dictionary(self, number: int, arrow_type: pa.DataType) -> pa.Array:
        """A shared dictionary, decoded when it is first needed."""
        with self._lock:
            if (number, arrow_type) not in self._dictionaries:
                self._check_dictionary_type(number, arrow_type)
                chunks = [self._footer.dictionary_chunk(each) for each in self._footer.dictionary(number)]
                parts = [self._dictionary_part(chunk, number, arrow_type) for chunk in chunks]
                self._dictionaries[number, arrow_type] = pa.concat_arrays(parts) if parts else pa.array([], arrow_type)
            return self._dictionaries[number, arrow_type]

    def _check_dictionary_type(self, number: int, arrow_type: pa.DataType) -> None:
        if number >= self._footer.dictionaries:
            raise F3Error(f"shared dictionary {number} is needed; the file has {self._footer.dictionaries}")
        if self._dictionary_types is None:
            self._dictionary_types = _schema(self._footer.dictionary_schema)
        types = self._dictionary_types
        # The original loses the time zone on the way.
        if number >= len(types) or _without_zone(types.field(number).type) != _without_zone(arrow_type):
            raise F3Error(f"shared dictionary {number} does not hold {arrow_type}")

    def _dictionary_part(self, chunk: Chunk, number: int, arrow_type: pa.DataType) -> pa.Array:
        stored = _stored([chunk], f"shared dictionary {number}", self._metadata_start)
        if chunk.scope != metadata.NO_DICTIONARY:
            raise F3Error(f"shared dictionary {number} is made with another dictionary")
        key = _key(chunk)
        held = self._fetched({key: (chunk, chunk.offset, chunk.offset + chunk.size_bytes)})
        return _Values(self, held).array(arrow_type, stored.units)


_Key = tuple[int, int]
"""Offset and size of an IOUnit."""
_Held = dict[_Key, tuple[int, memoryview]]
"""What is there of an IOUnit: where it begins in the file, and its bytes."""


def _key(chunk: Chunk) -> _Key:
    return chunk.offset, chunk.size_bytes


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit of rows: values, or indices with the local dictionary that stands before them."""

    chunk: Chunk
    start: int
    values: EncUnit
    dictionary: EncUnit | None

    @property
    def stop(self) -> int:
        return self.start + self.values.size_bytes

    @property
    def first_byte(self) -> int:
        return self.start - (0 if self.dictionary is None else self.dictionary.size_bytes)


@dataclass(frozen=True, slots=True)
class _Stored:
    """One physical column in one row group; `starts` are the rows at which the units begin, and the last one's end."""

    chunks: tuple[Chunk, ...]
    units: tuple[_Unit, ...]
    starts: np.ndarray

    @property
    def rows(self) -> int:
        return int(self.starts[-1])


def _stored(chunks: Sequence[Chunk], what: str, data_end: int) -> _Stored:
    """The units of a column's IOUnits. Raises F3Error where places or counts cannot be."""
    units: list[_Unit] = []
    for chunk in chunks:
        if chunk.offset + chunk.size_bytes > data_end:
            raise F3Error(f"{what}: an IOUnit at {chunk.offset} of {chunk.size_bytes} bytes reaches into the metadata")
        found = _local(chunk, what) if chunk.scope == metadata.LOCAL_DICTIONARY else _single(chunk)
        if sum(unit.values.rows for unit in found) != chunk.rows:
            raise F3Error(f"{what}: the units of an IOUnit of {chunk.rows} rows have others")
        units += found
    for unit in units:
        entries = 0 if unit.dictionary is None else unit.dictionary.rows
        if max(unit.values.rows, entries) > _MOST_UNIT_ROWS:
            raise F3Error(f"{what}: an EncUnit of {unit.values.rows} rows is larger than is read ({_MOST_UNIT_ROWS})")
    starts = np.zeros(len(units) + 1, np.int64)
    np.cumsum(np.array([unit.values.rows for unit in units], np.int64), out=starts[1:])
    return _Stored(tuple(chunks), tuple(units), starts)


def _single(chunk: Chunk) -> list[_Unit]:
    start = chunk.offset
    found = []
    for unit in chunk.units:
        found.append(_Unit(chunk, start, unit, None))
        start += unit.size_bytes
    return found


def _local(chunk: Chunk, what: str) -> list[_Unit]:
    pairs = len(chunk.units) // 2
    named = chunk.dictionary_units or tuple(range(0, 2 * pairs, 2))
    if len(chunk.units) != 2 * pairs or named != tuple(range(0, 2 * pairs, 2)):
        raise F3Error(f"{what}: {len(chunk.units)} units with dictionaries at {named} are no pairs")
    start = chunk.offset
    found = []
    for dictionary, indices in zip(chunk.units[::2], chunk.units[1::2], strict=True):
        found.append(_Unit(chunk, start + dictionary.size_bytes, indices, dictionary))
        start += dictionary.size_bytes + indices.size_bytes
    return found


@dataclass(frozen=True)
class _Picked:
    """Rows of some row groups, counted from the first row of the first of them."""

    groups: tuple[int, ...]
    wanted: range | np.ndarray

    @property
    def count(self) -> int:
        return len(self.wanted)

    def halves(self) -> tuple[_Picked, _Picked]:
        """The first and the second half."""
        middle = len(self.wanted) // 2
        return _Picked(self.groups, self.wanted[:middle]), _Picked(self.groups, self.wanted[middle:])

    def located(self, starts: np.ndarray) -> tuple[list[int], range | np.ndarray]:
        """The units that hold the rows, and where the rows lie in what they decode to."""
        if len(self.wanted) == 0:
            return [], range(0)
        if isinstance(self.wanted, range):
            first = int(np.searchsorted(starts, self.wanted.start, "right")) - 1
            after = int(np.searchsorted(starts, self.wanted.stop, "left"))
            skipped = self.wanted.start - int(starts[first])
            return list(range(first, after)), range(skipped, skipped + len(self.wanted))
        holding = np.searchsorted(starts, self.wanted, "right") - 1
        units, order = np.unique(holding, return_inverse=True)
        sizes = starts[units + 1] - starts[units]
        moved = np.cumsum(sizes) - sizes
        return units.tolist(), moved[order] + self.wanted - starts[holding]


def _in_groups(wanted: range | np.ndarray, group_starts: np.ndarray) -> _Picked:
    if isinstance(wanted, range):
        first = int(np.searchsorted(group_starts, wanted.start, "right")) - 1
        after = int(np.searchsorted(group_starts, wanted.stop, "left"))
        base = int(group_starts[first])
        return _Picked(tuple(range(first, after)), range(wanted.start - base, wanted.stop - base))
    holding = np.searchsorted(group_starts, wanted, "right") - 1
    groups, order = np.unique(holding, return_inverse=True)
    sizes = group_starts[groups + 1] - group_starts[groups]
    moved = np.cumsum(sizes) - sizes
    return _Picked(tuple(groups.tolist()), moved[order] + wanted - group_starts[holding])


class _Plan:
    """What a call reads: for each column the units that hold its rows."""

    def __init__(self, file: File, nodes: Sequence[Node], picked: _Picked) -> None:
        self._file, self._nodes, self._picked = file, nodes, picked
        self._columns: dict[int, tuple[list[_Unit], np.ndarray]] = {}
        self._needed: dict[int, dict[_Key, tuple[Chunk, int, int]]] = {}
        for node in nodes:
            for column in (each.column for each in node.walk()):
                self._columns[column] = self._column(column, picked.groups)
            self._needed[node.column] = self._spans(node, picked)
        self._check_apart()

    def arrays(self) -> Iterator[list[pa.Array]]:
        """Each node's rows, in one array if they fit into one. Columns are read together up to 32 MB, so that small
        ones take one read and large ones do not lie in memory while others are decoded."""
        first = 0
        while first < len(self._nodes):
            spans: dict[_Key, tuple[Chunk, int, int]] = {}
            last, size = first, 0
            while last < len(self._nodes) and (last == first or size < _AT_ONCE_BYTES):
                needed = self._needed[self._nodes[last].column]
                spans.update(needed)
                size += sum(stop - start for _, start, stop in needed.values())
                last += 1
            held = self._file._fetched(spans)
            for node in self._nodes[first:last]:
                yield self._chunks(node, self._picked, held)
            first = last

    def hold(self, before: _Held) -> _Held:
        """The whole IOUnits that the rows lie in; those that are there already are not read again."""
        needed = {
            key: (chunk, chunk.offset, chunk.offset + chunk.size_bytes)
            for spans in self._needed.values()
            for key, (chunk, _, _) in spans.items()
        }
        kept = {key: before[key] for key in needed if key in before}
        return kept | self._file._fetched({key: span for key, span in needed.items() if key not in kept})

    def array_of(self, node: Node, held: _Held) -> pa.Array:
        """A node's rows in one array."""
        return self._rows(node, self._picked, held)

    def _column(self, column: int, groups: Sequence[int]) -> tuple[list[_Unit], np.ndarray]:
        stored = [self._file._units[group, column] for group in groups]
        if len(stored) == 1:
            return list(stored[0].units), stored[0].starts
        units = [unit for each in stored for unit in each.units]
        starts = np.zeros(len(units) + 1, np.int64)
        np.cumsum(np.array([unit.values.rows for unit in units], np.int64), out=starts[1:])
        return units, starts

    def _check_apart(self) -> None:
        """No two IOUnits of a row group overlap; many in one place would make few bytes an endless table."""
        places = sorted(
            {(unit.chunk.offset, unit.chunk.size_bytes, column) for column, (units, _) in self._columns.items()
             for unit in units if unit.chunk.size_bytes}
        )
        for (offset, size, _), (following, _, column) in zip(places, places[1:], strict=False):
            if following < offset + size:
                raise F3Error(f"column {column} has an IOUnit at {following}, where another lies")

    def _spans(self, node: Node, picked: _Picked) -> dict[_Key, tuple[Chunk, int, int]]:
        """The stretch of each IOUnit that the node's units lie in."""
        spans: dict[_Key, tuple[Chunk, int, int]] = {}
        for column, ordinals in self._ordinals(node, picked):
            units = self._columns[column][0]
            for place in ordinals:
                self._extend(spans, self._unit(units, place, node))
        return spans

    def _ordinals(self, node: Node, picked: _Picked) -> Iterator[tuple[int, list[int]]]:
        """Which units of which physical columns a node's rows lie in. What lies in lists goes by the units of the list."""
        if node.pushed_down:
            for child in node.children:
                yield child.column, picked.located(self._columns[child.column][1])[0]
            return
        ordinals = picked.located(self._columns[node.column][1])[0]
        yield node.column, ordinals
        if node.is_list:
            yield from ((each.column, ordinals) for child in node.children for each in child.walk())
        else:
            for child in node.children:
                yield from self._ordinals(child, picked)

    def _extend(self, spans: dict[_Key, tuple[Chunk, int, int]], unit: _Unit) -> None:
        chunk, key = unit.chunk, _key(unit.chunk)
        start, stop = unit.first_byte, unit.stop
        if self._file._verifies(chunk):
            start, stop = chunk.offset, chunk.offset + chunk.size_bytes
        if key in spans:
            start, stop = min(start, spans[key][1]), max(stop, spans[key][2])
        spans[key] = (chunk, start, stop)

    def _unit(self, units: Sequence[_Unit], place: int, node: Node) -> _Unit:
        if place >= len(units):
            raise F3Error(f"column {node.what}: the units of lists and of their items do not match")
        return units[place]

    # --- arrays ----------------------------------------------------------------------------------------------------

    def _chunks(self, node: Node, picked: _Picked, held: _Held) -> list[pa.Array]:
        try:
            return [self._rows(node, picked, held)]
        except shredding.TooLongError:
            if picked.count < 2:
                raise
            first, second = picked.halves()
            return [*self._chunks(node, first, held), *self._chunks(node, second, held)]

    def _rows(self, node: Node, picked: _Picked, held: _Held) -> pa.Array:
        """The rows of a node that goes by rows: a top-level column, or the field of a struct."""
        if node.is_struct:
            ordinals, place = picked.located(self._columns[node.column][1])
            present = _cut(self._flat(node, pa.bool_(), ordinals, held), place)
            children = [self._rows(child, picked, held) for child in node.children]
            with _Placed(f"column {node.what}"):
                return shredding.structs(node.type, present, children)
        column = node.children[0].column if node.pushed_down else node.column
        ordinals, place = picked.located(self._columns[column][1])
        return _cut(self._whole(node, ordinals, held), place)

    def _whole(self, node: Node, ordinals: Sequence[int], held: _Held) -> pa.Array:
        """All values of some units."""
        if node.pushed_down:
            return self._pushed_down(node, ordinals, held)
        if node.is_list:
            return self._lists(node, ordinals, held)
        if node.is_struct:
            present = self._flat(node, pa.bool_(), ordinals, held)
            self._check_aligned(node, ordinals)
            children = [self._whole(child, ordinals, held) for child in node.children]
            with _Placed(f"column {node.what}"):
                return shredding.structs(node.type, present, children)
        return self._flat(node, node.type, ordinals, held)

    def _flat(self, node: Node, arrow_type: pa.DataType, ordinals: Sequence[int], held: _Held) -> pa.Array:
        units = self._columns[node.column][0]
        with _Placed(f"column {node.what}"):
            return _Values(self._file, held).array(arrow_type, [units[place] for place in ordinals])

    def _lists(self, node: Node, ordinals: Sequence[int], held: _Held) -> pa.Array:
        units = self._columns[node.column][0]
        with _Placed(f"column {node.what}"):
            present, parts, _ = _Values(self._file, held).framed(node.type, [units[place] for place in ordinals], 2)
            counts = shredding.item_counts(parts)
            self._check_items(node, ordinals, counts)
        items = self._whole(node.children[0], ordinals, held)
        with _Placed(f"column {node.what}"):
            return shredding.lists(node.type, present, parts, items)

    def _pushed_down(self, node: Node, ordinals: Sequence[int], held: _Held) -> pa.Array:
        fields = []
        first: tuple[pa.Array, list[np.ndarray]] | None = None
        for child in node.children:
            units = self._columns[child.column][0]
            with _Placed(f"column {child.what}"):
                values = _Values(self._file, held)
                present, parts, rest = values.framed(node.type, [self._unit(units, each, node) for each in ordinals], 3)
                counts = shredding.item_counts(parts)
                arrays = [
                    values.decoded(payload, unit, child.type, count)
                    for (payload, unit), count in zip(rest, counts, strict=True)
                ]
                fields.append(pa.concat_arrays(arrays) if arrays else pa.array([], child.type))
            if first is None:
                first = (present, parts)
            elif not first[0].equals(present) or any(map(_differ, first[1], parts)):
                raise F3Error(f"column {node.what}: its fields have other lists each")
        if first is None:
            raise F3Error(f"column {node.what}: a struct without fields cannot tell which lists are there")
        items = pa.Array.from_buffers(node.type.value_type, len(fields[0]), [None], children=fields)
        with _Placed(f"column {node.what}"):
            return shredding.lists(node.type, *first, items)

    def _check_aligned(self, node: Node, ordinals: Sequence[int]) -> None:
        """Below lists, the units of a struct's fields hold what the struct's own do."""
        own = self._columns[node.column][0]
        for child in node.children:
            units = self._columns[child.column][0]
            for place in ordinals:
                if self._unit(units, place, child).values.rows != own[place].values.rows:
                    raise F3Error(f"column {child.what}: its units are not those of the struct")

    def _check_items(self, node: Node, ordinals: Sequence[int], counts: Sequence[int]) -> None:
        units = self._columns[node.children[0].column][0]
        for place, count in zip(ordinals, counts, strict=True):
            if self._unit(units, place, node).values.rows != count:
                raise F3Error(f"unit {place} of lists has {count} items, that of the items {units[place].values.rows}")


class _Values:
    """Turns units, whose bytes are held, into arrays."""

    def __init__(self, file: File, held: _Held) -> None:
        self._file, self._held = file, held

    def array(self, arrow_type: pa.DataType, units: Sequence[_Unit]) -> pa.Array:
        """The values of units of one column, in one array. Raises F3Error, TooLongError for more than an array holds."""
        arrays = []
        filled = (unit for unit in units if unit.values.rows)
        for (scope, number, _), run in groupby(filled, key=_kind):
            members = list(run)
            if scope == metadata.LOCAL_DICTIONARY:
                arrays += [self._local(arrow_type, unit) for unit in members]
            elif scope == metadata.SHARED_DICTIONARY:
                values = self._file._dictionary(number, arrow_type)
                rows = sum(unit.values.rows for unit in members)
                # Indices into nothing are not even looked at.
                arrays.append(
                    looked_up(values, self._run(index_type(len(values)), members))
                    if len(values)
                    else pa.nulls(rows, arrow_type)
                )
            else:
                arrays.append(self._run(arrow_type, members))
        if len(arrays) == 1:
            return arrays[0]
        return _joined(arrays, arrow_type)

    def framed(
        self, list_type: pa.DataType, units: Sequence[_Unit], count: int
    ) -> tuple[pa.Array, list[np.ndarray], list[tuple[memoryview, _Unit]]]:
        """Of units of lists: which lists are there, the offsets of each unit, and the payloads of items, if any."""
        offsets_type = pa.int64() if pa.types.is_large_list(list_type) else pa.int32()
        present: list[pa.Array] = []
        parts: list[np.ndarray] = []
        items: list[tuple[memoryview, _Unit]] = []
        for unit in units:
            if unit.chunk.scope != metadata.NO_DICTIONARY:
                raise F3Error("lists have a dictionary, which is for values")
            if unit.values.rows == 0:
                parts.append(np.empty(0, offsets_type.to_pandas_dtype()))
                items.append((memoryview(b""), unit))
                continue
            payloads = framing.split(self._payload(unit.start, unit.values, unit), count)
            present.append(self.decoded(payloads[0], unit, pa.bool_(), unit.values.rows))
            offsets = self.decoded(payloads[1], unit, offsets_type, unit.values.rows + 1)
            if offsets.null_count:
                raise F3Error("offsets of lists are missing")
            parts.append(offsets.to_numpy())
            items.append((payloads[2] if count == 3 else memoryview(b""), unit))
        return pa.concat_arrays(present) if present else pa.array([], pa.bool_()), parts, items

    def decoded(self, payload: memoryview, unit: _Unit, arrow_type: pa.DataType, rows: int) -> pa.Array:
        """The array of one payload."""
        if rows == 0:
            return pa.array([], arrow_type)
        return _checked(self._file._decoder(unit.values).decode(payload, arrow_type, rows), arrow_type, rows)

    def _run(self, arrow_type: pa.DataType, units: Sequence[_Unit]) -> pa.Array:
        """Units of one module."""
        payloads = [self._payload(unit.start, unit.values, unit) for unit in units]
        rows = [unit.values.rows for unit in units]
        decoder = self._file._decoder(units[0].values)
        if len(units) == 1:
            return _checked(decoder.decode(payloads[0], arrow_type, rows[0]), arrow_type, rows[0])
        return _checked(decoder.decode_into(payloads, arrow_type, rows), arrow_type, sum(rows))

    def _local(self, arrow_type: pa.DataType, unit: _Unit) -> pa.Array:
        dictionary = unit.dictionary
        assert dictionary is not None  # the scope is local
        if dictionary.rows == 0:
            return pa.nulls(unit.values.rows, arrow_type)
        payload = self._payload(unit.first_byte, dictionary, unit)
        values = _checked(
            self._file._decoder(dictionary).decode(payload, arrow_type, dictionary.rows), arrow_type, dictionary.rows
        )
        return looked_up(values, self._run(index_type(dictionary.rows), [unit]))

    def _payload(self, start: int, stored: EncUnit, unit: _Unit) -> memoryview:
        base, data = self._held[_key(unit.chunk)]
        bytes_of_unit = data[start - base : start - base + stored.size_bytes]
        return decompress(bytes_of_unit, stored.compression, f"EncUnit at {start}")


def _kind(unit: _Unit) -> tuple[int, int, int]:
    """Units of one kind are decoded together."""
    wasm_id = unit.values.wasm_id
    return unit.chunk.scope, unit.chunk.dictionary or 0, -1 if wasm_id is None else wasm_id


def _checked(array: pa.Array, arrow_type: pa.DataType, rows: int) -> pa.Array:
    if array.type != arrow_type:
        raise F3Error(f"{array.type} was decoded where {arrow_type} is stored")
    if len(array) != rows:
        raise F3Error(f"{len(array)} rows were decoded where {rows} are stored")
    return array


def _joined(arrays: list[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    try:
        return pa.concat_arrays(arrays) if arrays else pa.array([], arrow_type)
    except pa.ArrowInvalid as error:
        raise shredding.TooLongError(str(error)) from None


def _cut(array: pa.Array, place: range | np.ndarray) -> pa.Array:
    if isinstance(place, np.ndarray):
        return array.take(pa.array(place))
    return array if len(place) == len(array) else array.slice(place.start, len(place))


def _differ(first: np.ndarray, second: np.ndarray) -> bool:
    return not np.array_equal(first, second)


def _rows_alone(schema: pa.Schema, rows: int) -> pa.Table:
    """A table without columns still has rows."""
    return pa.table({"": pa.nulls(rows)}).select([]).replace_schema_metadata(schema.metadata)


def _row_numbers(rows: Sequence[int] | np.ndarray) -> np.ndarray:
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        raise F3Error(f"rows: needs a slice, a range or a list of row numbers, got {type(rows).__name__} of {numbers.dtype}")
    return numbers.astype(np.int64)


def _first_column(node: Node) -> int:
    return node.children[0].column if node.pushed_down else node.column


def _without_zone(arrow_type: pa.DataType) -> pa.DataType:
    return pa.timestamp(arrow_type.unit) if pa.types.is_timestamp(arrow_type) else arrow_type


def _schema(message: memoryview) -> pa.Schema:
    """The schema of a bare IPC message, which the specification stores without the 8 bytes in front."""
    padded = (len(message) + 7) // 8 * 8
    framed = b"".join((b"\xff\xff\xff\xff", padded.to_bytes(4, "little"), message, bytes(padded - len(message))))
    try:
        return pa.ipc.read_schema(pa.py_buffer(framed))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise F3Error(f"the schema cannot be read: {error}") from None


def _described(node: Node, stored: Sequence[_Stored]) -> ColumnInfo:
    chunks = [chunk for each in stored for chunk in each.chunks]
    units = [unit for chunk in chunks for unit in chunk.units]
    return ColumnInfo(
        name=node.what,
        type=str(node.type),
        rows=sum(each.rows for each in stored),
        io_units=len(chunks),
        enc_units=len(units),
        size_bytes=sum(chunk.size_bytes for chunk in chunks),
        scopes=tuple(sorted({metadata.SCOPES[chunk.scope] for chunk in chunks})),
        codecs=tuple(sorted({_CODEC_NAMES[unit.compression] for unit in units})),
        modules=tuple(sorted({unit.wasm_id for unit in units if unit.wasm_id is not None})),
    )


class _Placed:
    """Puts the place, a file or a column, before what went wrong there; and what Arrow finds wrong is wrong with it."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, F3Error):
            raise type(error)(f"{self._what}: {error}") from error.__cause__
        if isinstance(error, pa.ArrowException | UnicodeDecodeError):
            raise F3Error(f"{self._what}: {error}") from None
