"""Read and write the metadata of a file, which are FlatBuffers (specification section 2).

Only requested fields are read. Counts and offsets are checked by the modules that use them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import flatbuffers

from libraries.f3.container.flat import Table, root
from libraries.f3.errors import F3Error

CASCADE, CUSTOM_WASM = 0, 255
"""Values of EncodingType: the built-in encoding of the F3 authors' program (a Vortex blob), and a payload that a module
in the file decodes."""
NO_DICTIONARY, LOCAL_DICTIONARY, SHARED_DICTIONARY = 1, 2, 3
SCOPES = {NO_DICTIONARY: "none", LOCAL_DICTIONARY: "local", SHARED_DICTIONARY: "shared"}
UNCOMPRESSED, ZSTD, LZ4 = 0, 1, 2
FLAT, LIST, STRUCT, LIST_OF_STRUCT_OF_PRIMITIVE = 0, 1, 2, 3
WASM_SECTION = "WASMBinaries"
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_MOST_TEMPLATE_NUMBERS = 100
"""Metadata with more numbers than this are built without a template. Building is then a small part of writing the
column."""
_MADE_UP = 0x71000000


@dataclass(frozen=True, slots=True)
class Section:
    """An uncompressed byte range of the file."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EncUnit:
    """An EncUnit, the smallest part of a column that can be decoded: its stored size, rows and compression, and the
    module that decodes it (None: the EncUnit names no module)."""

    size_bytes: int
    rows: int
    encoding: int
    wasm_id: int | None
    compression: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """An IOUnit, a group of EncUnits of one column that were written together: byte range, rows, dictionary scope, and
    EncUnits in order.

    `dictionary` is the id of the shared dictionary. `dictionary_units` are the ordinals of the EncUnits that are local
    dictionaries, if the file lists them.
    """

    offset: int
    size_bytes: int
    rows: int
    scope: int
    units: tuple[EncUnit, ...]
    dictionary: int | None = None
    dictionary_units: tuple[int, ...] = ()
    checksum: int | None = None


@dataclass(frozen=True, slots=True)
class LogicalTree:
    """The nesting of the columns, as a tree. `kind` is FLAT, LIST, STRUCT or LIST_OF_STRUCT_OF_PRIMITIVE."""

    kind: int
    children: tuple[LogicalTree, ...] = ()


# --- reading -------------------------------------------------------------------------------------------------------


class Footer:
    """A view of the footer, which looks up fields on demand."""

    def __init__(self, data: memoryview) -> None:
        """Look up the mandatory parts. Raises F3Error if one is missing."""
        self._table = root(data, "footer")
        self._groups = self._table.needed(2, "row groups")
        counts = self._groups.u32s(0)
        if counts is None or len(counts) == 0:
            raise F3Error("footer: has no row groups")
        self.row_counts: Sequence[int] = counts
        described = self._groups.count(3)
        if described != len(counts):
            raise F3Error(f"footer: has metadata of {described} row groups, but row counts of {len(counts)}")
        self._described: dict[int, Table] = {}

    @property
    def schema(self) -> memoryview:
        """The Arrow schema as an IPC message without its length prefix."""
        found = self._table.bytes(0)
        if found is None:
            raise F3Error("footer: has no schema")
        return found

    def kind(self, place: int) -> int:
        """Return the kind of a top-level column (LogicalId): FLAT, LIST, STRUCT or LIST_OF_STRUCT_OF_PRIMITIVE."""
        return self._table.needed(1, "logical tree").element(1, place).u8(0)

    def column(self, group: int, column: int) -> Section:
        """Return the byte range of the metadata of a physical column in a row group."""
        section = self._group(group).element(0, column)
        return _section(section, f"metadata of column {column}, row group {group}")

    def columns(self, group: int) -> int:
        """Return the number of physical columns of a row group."""
        return self._group(group).count(0)

    def _group(self, group: int) -> Table:
        if group not in self._described:
            self._described[group] = self._groups.element(3, group)
        return self._described[group]

    def optional_section(self, name: str) -> Section | None:
        """Return the byte range of the optional section of that name, or None if the file does not have it."""
        sections = self._table.table(3)
        if sections is None:
            return None
        names = sections.texts(0)
        if name not in names:
            return None
        place = names.index(name)
        offsets, sizes, packed = sections.u64s(1), sections.u32s(2), sections.bytes(3)
        if offsets is None or sizes is None or not place < min(len(offsets), len(sizes)):
            raise F3Error(f"footer: the section {name} has no offset or no size")
        if packed is not None and place < len(packed) and packed[place] != UNCOMPRESSED:
            raise F3Error(f"footer: the section {name} is compressed, which is not supported")
        return Section(offsets[place], sizes[place])

    @cached_property
    def _shared(self) -> Table:
        return self._table.needed(5, "table of shared dictionaries")

    @property
    def dictionaries(self) -> int:
        """Number of shared dictionaries."""
        return 0 if self._table.table(5) is None else self._shared.count(1)

    def dictionary(self, number: int) -> tuple[int, ...]:
        """Return the ids of the IOUnits that form a shared dictionary when they are concatenated."""
        ids = self._shared.element(1, number).u32s(0)
        if ids is None:
            raise F3Error(f"shared dictionary {number}: has no list of IOUnits")
        count = self._shared.count(0)
        if len(ids) > count:
            raise F3Error(f"shared dictionary {number}: names {len(ids)} IOUnits, but only {count} are stored")
        if len(set(ids)) != len(ids):
            raise F3Error(f"shared dictionary {number}: names an IOUnit twice")
        return tuple(ids)

    def dictionary_chunk(self, number: int) -> Chunk:
        """Return the IOUnit with this id, which is part of a shared dictionary."""
        return _chunk(self._shared.element(0, number), f"shared dictionary IOUnit {number}")

    def dictionary_chunks(self) -> Iterator[Chunk]:
        """Yield all IOUnits of the shared dictionaries."""
        for place, table in enumerate(() if self._table.table(5) is None else self._shared.elements(0)):
            yield _chunk(table, f"shared dictionary IOUnit {place}")

    @property
    def dictionary_schema(self) -> memoryview:
        """The value types of the shared dictionaries, as an IPC message without its length prefix."""
        found = self._shared.bytes(2)
        if found is None:
            raise F3Error("footer: the shared dictionaries have no schema")
        return found


def read_column(data: memoryview, what: str) -> list[Chunk]:
    """Return the IOUnits of a column in a row group. Raises F3Error."""
    table = root(data, what)
    return [_chunk(each, f"{what}, IOUnit {place}") for place, each in enumerate(table.elements(0))]


def read_modules(data: memoryview) -> list[Section]:
    """Return the byte ranges of the embedded modules, in the order of module ids. Raises F3Error."""
    table = root(data, WASM_SECTION)
    return [_section(each, f"module {place}") for place, each in enumerate(table.elements(0))]


def _section(table: Table, what: str) -> Section:
    if table.u8(2) != UNCOMPRESSED:
        raise F3Error(f"{what}: is compressed, which is not supported")
    return Section(table.u64(0), table.u32(1))


def _chunk(table: Table, what: str) -> Chunk:
    scope = table.u8(3)
    if scope not in SCOPES:
        raise F3Error(f"{what}: has dictionary scope {scope}, which does not exist")
    described = table.needed(4, "dictionary scope")
    units = tuple(_unit(each, what, place) for place, each in enumerate(table.elements(5)))
    chunk = Chunk(
        offset=table.u64(0),
        size_bytes=table.u32(1),
        rows=table.u64(2),
        scope=scope,
        units=units,
        dictionary=described.u32(0) if scope == SHARED_DICTIONARY else None,
        dictionary_units=_ordinals(described, len(units), what) if scope == LOCAL_DICTIONARY else (),
        checksum=table.u64(6) if table.has(6) else None,
    )
    stored = sum(unit.size_bytes for unit in units)
    if stored != chunk.size_bytes:
        raise F3Error(f"{what}: has {chunk.size_bytes} bytes, but its EncUnits together have {stored}")
    return chunk


def _ordinals(table: Table, units: int, what: str) -> tuple[int, ...]:
    ordinals = table.u32s(0)
    if ordinals is None:
        return ()
    if len(ordinals) > units:
        raise F3Error(f"{what}: names {len(ordinals)} dictionaries, but has only {units} EncUnits")
    return tuple(ordinals)


def _unit(table: Table, what: str, place: int) -> EncUnit:
    encoding = table.table(1)
    compression = table.u8(3)
    if encoding is None:
        raise F3Error(f"{what}, EncUnit {place}: has no encoding")
    if compression > LZ4:
        raise F3Error(f"{what}, EncUnit {place}: has compression type {compression}, which does not exist")
    # A present but empty table means module 0. An absent table means no module.
    wasm = encoding.table(1)
    return EncUnit(
        size_bytes=table.u32(0),
        rows=table.u32(2),
        encoding=encoding.u8(0),
        wasm_id=None if wasm is None else wasm.u32(0),
        compression=compression,
    )


# --- writing -------------------------------------------------------------------------------------------------------


def packed_column(chunks: Sequence[Chunk]) -> bytes:
    """Return the serialized metadata of a column in a row group.

    Metadata of the same structure differ only in numbers, such as offsets. The numbers are therefore written into a
    template that is built once. Building every column instead would take most of the time of writing a table of 10,000
    columns.
    """
    numbers = [number for chunk in chunks for number in _numbers_in(chunk)]
    if len(numbers) > _MOST_TEMPLATE_NUMBERS or any(chunk.checksum == 0 for chunk in chunks):
        return _built_column(chunks)
    structure = tuple(
        (
            chunk.scope, chunk.dictionary, chunk.dictionary_units, chunk.checksum is not None,
            tuple((unit.encoding, unit.wasm_id, unit.compression) for unit in chunk.units),
        )
        for chunk in chunks
    )  # fmt: skip
    template, places = _template(structure, tuple(number != 0 for _, number in numbers))
    packed = bytearray(template)
    for place, (form, number) in zip(places, numbers, strict=True):
        if place is not None:
            form.pack_into(packed, place, number)
    return bytes(packed)


def _numbers_in(chunk: Chunk) -> list[tuple[struct.Struct, int]]:
    """Return the numbers of an IOUnit that a template leaves open, each with the `struct.Struct` that packs it."""
    numbers = [(_U64, chunk.offset), (_U32, chunk.size_bytes), (_U64, chunk.rows)]
    for unit in chunk.units:
        numbers += [(_U32, unit.size_bytes), (_U32, unit.rows)]
    return numbers if chunk.checksum is None else [*numbers, (_U64, chunk.checksum)]


@lru_cache(maxsize=64)
def _template(structure: tuple[Any, ...], are_stored: tuple[bool, ...]) -> tuple[bytes, tuple[int | None, ...]]:
    """Build a template: metadata of this structure with made-up numbers. Return it with the position of each number.

    The position of a number that is not stored is None. A builder omits values that equal the default, so numbers that
    are 0 are not stored. `are_stored` states which numbers are stored.
    """
    given = iter(are_stored)
    count = 0

    def made_up(form: struct.Struct) -> int:
        nonlocal count
        count += 1
        number = _MADE_UP + count * 0x01010101
        return 0 if not next(given) else number if form is _U32 else number << 32 | number ^ 0x5A5A5A5A

    chunks = []
    for scope, dictionary, dictionary_units, has_checksum, kinds in structure:
        offset, size_bytes, rows = made_up(_U64), made_up(_U32), made_up(_U64)
        units = tuple(EncUnit(made_up(_U32), made_up(_U32), *kind) for kind in kinds)
        checksum = made_up(_U64) if has_checksum else None
        chunks.append(Chunk(offset, size_bytes, rows, scope, units, dictionary, dictionary_units, checksum))
    built = _built_column(chunks)
    places: list[int | None] = []
    for form, number in (each for chunk in chunks for each in _numbers_in(chunk)):
        packed = form.pack(number)
        assert number == 0 or built.count(packed) == 1  # The made-up numbers differ from each other and from offsets.
        places.append(built.index(packed) if number else None)
    return built, tuple(places)


def _built_column(chunks: Sequence[Chunk]) -> bytes:
    builder = flatbuffers.Builder(256 + 64 * sum(1 + len(chunk.units) for chunk in chunks))
    made = _chunks(builder, chunks)
    builder.Finish(_of_offsets(builder, [made]))
    return bytes(builder.Output())


def packed_modules(sections: Sequence[Section]) -> bytes:
    """Return the serialized directory of embedded modules."""
    builder = flatbuffers.Builder(64 + 32 * len(sections))
    made = _vector(builder, [_packed_section(builder, section) for section in sections])
    builder.Finish(_of_offsets(builder, [made]))
    return bytes(builder.Output())


@dataclass(frozen=True, kw_only=True)
class RowGroup:
    """A row group in the footer: its number of rows, its data section, and the metadata sections of its columns."""

    rows: int
    data: Section
    columns: Sequence[Section]


def packed_footer(
    *,
    schema: bytes,
    tree: LogicalTree,
    groups: Sequence[RowGroup],
    optional: Mapping[str, Section],
    dictionary_chunks: Sequence[Chunk],
    dictionary_positions: Sequence[Sequence[int]],
    dictionary_schema: bytes,
) -> bytes:
    """Return the serialized footer, with every field that the F3 authors' reader requires (specification 2.3)."""
    builder = flatbuffers.Builder(1024 + len(schema) + 64 * sum(len(group.columns) for group in groups))
    schema_made = builder.CreateByteVector(schema)
    tree_made = _packed_tree(builder, tree)
    groups_made = _packed_groups(builder, groups)
    optional_made = _packed_optional(builder, optional)
    versions = [_packed_version(builder, CASCADE, 0, 21), _packed_version(builder, CUSTOM_WASM, 1, 0)]
    versions_made = _vector(builder, versions)
    shared_made = _packed_shared(builder, dictionary_chunks, dictionary_positions, dictionary_schema)
    made = (schema_made, tree_made, groups_made, optional_made, versions_made, shared_made)
    builder.Finish(_of_offsets(builder, made))
    return bytes(builder.Output())


def _vector(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    made: int = builder.EndVector()
    return made


def _of_offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    """Build a table whose fields are these offsets, in order. A field with offset 0 is absent."""
    builder.StartObject(len(offsets))
    for slot, offset in enumerate(offsets):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    made: int = builder.EndObject()
    return made


def _numbers(builder: flatbuffers.Builder, values: Sequence[int], width: int) -> int:
    prepend = {1: builder.PrependUint8, 4: builder.PrependUint32, 8: builder.PrependUint64}[width]
    builder.StartVector(width, len(values), width)
    for value in reversed(values):
        prepend(value)
    made: int = builder.EndVector()
    return made


def _packed_section(builder: flatbuffers.Builder, section: Section) -> int:
    builder.StartObject(3)
    builder.PrependUint64Slot(0, section.offset, 0)
    builder.PrependUint32Slot(1, section.size_bytes, 0)
    made: int = builder.EndObject()
    return made


def _chunks(builder: flatbuffers.Builder, chunks: Sequence[Chunk]) -> int:
    """Build a vector of IOUnits. EncUnits have few distinct encodings, so each encoding is stored once."""
    encodings: dict[tuple[int, int | None], int] = {}
    for chunk in chunks:
        for unit in chunk.units:
            kind = (unit.encoding, unit.wasm_id)
            if kind not in encodings:
                encodings[kind] = _packed_encoding(builder, *kind)
    return _vector(builder, [_packed_chunk(builder, chunk, encodings) for chunk in chunks])


def _packed_encoding(builder: flatbuffers.Builder, encoding: int, wasm_id: int | None) -> int:
    wasm = 0
    if wasm_id is not None:
        sizes = _numbers(builder, (), 4)
        builder.StartObject(2)
        builder.PrependUint32Slot(0, wasm_id, 0)
        builder.PrependUOffsetTRelativeSlot(1, sizes, 0)
        wasm = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUint8Slot(0, encoding, 0)
    builder.PrependUOffsetTRelativeSlot(1, wasm, 0)
    made: int = builder.EndObject()
    return made


def _packed_chunk(builder: flatbuffers.Builder, chunk: Chunk, encodings: Mapping[tuple[int, int | None], int]) -> int:
    made_units = []
    for unit in chunk.units:
        builder.StartObject(4)
        builder.PrependUint32Slot(0, unit.size_bytes, 0)
        builder.PrependUOffsetTRelativeSlot(1, encodings[unit.encoding, unit.wasm_id], 0)
        builder.PrependUint32Slot(2, unit.rows, 0)
        builder.PrependUint8Slot(3, unit.compression, 0)
        made_units.append(builder.EndObject())
    units = _vector(builder, made_units)
    ordinals = _numbers(builder, chunk.dictionary_units, 4) if chunk.scope == LOCAL_DICTIONARY else 0
    builder.StartObject(1)
    if chunk.scope == SHARED_DICTIONARY:
        builder.PrependUint32Slot(0, chunk.dictionary or 0, 0)
    elif chunk.scope == LOCAL_DICTIONARY:
        builder.PrependUOffsetTRelativeSlot(0, ordinals, 0)
    scope = builder.EndObject()
    builder.StartObject(7)
    builder.PrependUint64Slot(0, chunk.offset, 0)
    builder.PrependUint32Slot(1, chunk.size_bytes, 0)
    builder.PrependUint64Slot(2, chunk.rows, 0)
    builder.PrependUint8Slot(3, chunk.scope, 0)
    builder.PrependUOffsetTRelativeSlot(4, scope, 0)
    builder.PrependUOffsetTRelativeSlot(5, units, 0)
    if chunk.checksum is not None:
        # The builder omits values equal to the default. With None as the default, a checksum of 0 is stored too.
        builder.PrependUint64Slot(6, chunk.checksum, None)
    made: int = builder.EndObject()
    return made


def _packed_tree(builder: flatbuffers.Builder, tree: LogicalTree) -> int:
    packed: dict[LogicalTree, int] = {}

    def pack(node: LogicalTree) -> int:
        # Equal subtrees are stored once. For example, 10,000 leaves of one kind become a single table.
        if node not in packed:
            children = _vector(builder, [pack(child) for child in node.children])
            builder.StartObject(2)
            builder.PrependUint8Slot(0, node.kind, 0)
            builder.PrependUOffsetTRelativeSlot(1, children, 0)
            packed[node] = builder.EndObject()
        return packed[node]

    return pack(tree)


def _packed_groups(builder: flatbuffers.Builder, groups: Sequence[RowGroup]) -> int:
    described = []
    for group in groups:
        sections = _vector(builder, [_packed_section(builder, section) for section in group.columns])
        described.append(_of_offsets(builder, [sections]))
    vectors = (
        _numbers(builder, [group.rows for group in groups], 4),
        _numbers(builder, [group.data.offset for group in groups], 8),
        # The field has 32 bits, so larger sizes are cut off. No reader uses the field.
        _numbers(builder, [min(group.data.size_bytes, 2**32 - 1) for group in groups], 4),
        _vector(builder, described),
    )
    return _of_offsets(builder, vectors)


def _packed_optional(builder: flatbuffers.Builder, sections: Mapping[str, Section]) -> int:
    names = [builder.CreateString(name) for name in sections]
    vectors = (
        _vector(builder, names),
        _numbers(builder, [section.offset for section in sections.values()], 8),
        _numbers(builder, [section.size_bytes for section in sections.values()], 4),
        _numbers(builder, [UNCOMPRESSED] * len(sections), 1),
    )
    return _of_offsets(builder, vectors)


def _packed_version(builder: flatbuffers.Builder, encoding: int, major: int, minor: int) -> int:
    builder.StartObject(3)
    builder.PrependUint64Slot(0, major, 0)
    builder.PrependUint64Slot(1, minor, 0)
    version = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUint8Slot(0, encoding, 0)
    builder.PrependUOffsetTRelativeSlot(1, version, 0)
    made: int = builder.EndObject()
    return made


def _packed_shared(
    builder: flatbuffers.Builder, chunks: Sequence[Chunk], positions: Sequence[Sequence[int]], schema: bytes
) -> int:
    chunks_made = _chunks(builder, chunks)
    positions_made = _vector(builder, [_of_offsets(builder, [_numbers(builder, ids, 4)]) for ids in positions])
    schema_made = builder.CreateByteVector(schema)
    return _of_offsets(builder, [chunks_made, positions_made, schema_made])
