"""The contents of an open file: column metadata, IOUnits, modules and shared dictionaries. Each is read on first use.

An IOUnit is one or more EncUnits of a column that were written together. An EncUnit is the smallest part of a column
that can be decoded. `libraries.f3.columns.plan` assembles rows from these contents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import xxhash

from libraries.f3.container import io, metadata
from libraries.f3.container.faults import FRONT_BYTES, is_no_packed_unit, may_be_pairs, raw_units
from libraries.f3.container.layout import POSTSCRIPT_BYTES, read_postscript
from libraries.f3.container.metadata import Chunk, EncUnit, Footer, Section
from libraries.f3.container.units import Key, StoredColumn, key_of, stored_column
from libraries.f3.container.zones import SECTION, ZoneMaps, read_zones
from libraries.f3.encodings.coders import Coding, Decoder
from libraries.f3.encodings.versions import version_of
from libraries.f3.errors import F3Error
from libraries.f3.info import ModuleInfo

_END_BYTES = 64 * 1024
"""The number of bytes at the end of a file that are always read. In most files they contain the whole footer."""

_MOST_FRONTS = 64
"""Maximum number of units that are checked to find shared dictionaries whose units are marked as compressed but stored
raw. A writer with this fault makes it in all units, so a few suffice."""

Span = tuple[Chunk, int, int]
"""An IOUnit, and the byte range of the file to read from it: its start and its end."""
Held = dict[Key, tuple[int, memoryview]]
"""Key of an IOUnit or of a unit in it -> offset of its bytes in the file, and the bytes."""


class Contents:
    """One open file. `verify` has the meaning that `reader.open_file` documents."""

    def __init__(self, source: io.ByteSource, verify: str, prefer: str, coding: Coding) -> None:
        """Read the end of the file. If `verify` is "file", also verify the checksum of the whole file. Raises
        F3Error."""
        self.source = source
        self._verify, self._prefer, self.coding = verify, prefer, coding
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
        self.footer = Footer(footer)
        if verify == "file" and xxhash.xxh64_intdigest(self.footer.schema) != postscript.schema_checksum:
            raise F3Error("the schema does not match its checksum")
        self.schema = read_schema(self.footer.schema)
        self._check_edges()
        self._columns: dict[tuple[int, int], StoredColumn] = {}
        self._sections: list[Section] | None = None
        self._decoders: dict[int, Decoder] = {}
        self._dictionaries: dict[tuple[int, pa.DataType], pa.Array] = {}
        self._dictionary_types: pa.Schema | None = None

    def _verify_file(self, checksum: int) -> None:
        digest = xxhash.xxh64()
        for piece in io.pieces(self.source, self.source.size_bytes - POSTSCRIPT_BYTES):
            digest.update(piece)
        if digest.intdigest() != checksum:
            raise F3Error(f"the file's checksum is {digest.intdigest():016x}, expected {checksum:016x}")

    def _check_edges(self) -> None:
        """Check that the metadata of the columns begin where the postscript states, and end where the footer begins.
        Raises F3Error otherwise."""
        start = end = self._footer_start
        if self.footer.columns(0):
            start = self.footer.column(0, 0).offset
            group = len(self.footer.row_counts) - 1
            last = self.footer.column(group, self.footer.columns(group) - 1)
            end = last.offset + last.size_bytes
        if start != self._metadata_start or end != self._footer_start:
            said = f"{self._metadata_start} to {self._footer_start}"
            raise F3Error(f"the metadata of the columns are at {start} to {end}, but the postscript states {said}")

    # --- columns ---------------------------------------------------------------------------------------------------

    def load(self, groups: Sequence[int], columns: Sequence[int]) -> None:
        """Read the metadata of these physical columns, unless they are in memory already. Raises F3Error."""
        spans: dict[tuple[int, int], tuple[int, int]] = {}
        for group in groups:
            for column in columns:
                if (group, column) not in self._columns:
                    spans[group, column] = self._metadata_span(group, column)
        if len(set(spans.values())) != len(spans):
            raise F3Error("the metadata of two columns, or of a column in two row groups, are in the same place")
        found = io.read_spans(self.source, spans.values())
        for (group, column), span in spans.items():
            what = f"metadata of column {column}, row group {group}"
            chunks = metadata.read_column(found[span], what)
            local = group > 0 and any(map(may_be_pairs, chunks)) and self._begins_local(column)
            self._columns[group, column] = stored_column(chunks, what, self._metadata_start, local=local)

    def column(self, group: int, column: int) -> StoredColumn:
        """Return a loaded physical column of a row group."""
        return self._columns[group, column]

    def _begins_local(self, column: int) -> bool:
        """Return whether a column has local dictionaries in the first row group. Even files with wrong marks
        (`container.faults`) are marked correctly there."""
        self.load([0], [column])
        return any(chunk.scope == metadata.LOCAL_DICTIONARY for chunk in self.column(0, column).chunks)

    def _metadata_span(self, group: int, column: int) -> tuple[int, int]:
        section = self.footer.column(group, column)
        start, stop = section.offset, section.offset + section.size_bytes
        if not self._metadata_start <= start < stop <= self._footer_start:
            inside = f"not empty and within bytes {self._metadata_start} to {self._footer_start}"
            what = f"the metadata of column {column}, row group {group}"
            raise F3Error(f"{what} must be {inside} (got {start} to {stop})")
        return start, stop

    # --- bytes -----------------------------------------------------------------------------------------------------

    def verifies(self, chunk: Chunk) -> bool:
        """Return whether an IOUnit has to be read as a whole to verify its checksum."""
        # This also applies to verify="file", because a file with a valid checksum may hold an IOUnit with a wrong one.
        return self._verify != "none" and chunk.checksum is not None

    def fetched(self, spans: Mapping[Key, Span], buffer: io.ReadBuffer | None = None) -> Held:
        """Read IOUnits or parts of them.

        Neighbouring parts share a read. Raises F3Error if a checksum does not match.
        """
        found = io.read_spans(self.source, ((start, stop) for _, start, stop in spans.values() if stop > start), buffer)
        held: Held = {}
        for key, (chunk, start, stop) in spans.items():
            data = found[start, stop] if stop > start else memoryview(b"")
            if self.verifies(chunk) and xxhash.xxh64_intdigest(data) != chunk.checksum:
                raise F3Error(f"the IOUnit at {chunk.offset} does not match its checksum")
            held[key] = (start, data)
        return held

    # --- modules ---------------------------------------------------------------------------------------------------

    @property
    def module_sections(self) -> list[Section]:
        """The byte ranges of the embedded modules, by module id."""
        if self._sections is None:
            place = self.footer.optional_section(metadata.WASM_SECTION)
            # Assign the attribute only when the result is complete, because several threads may read it at the same
            # time.
            self._sections = (
                [] if place is None else metadata.read_modules(self.source.read(place.offset, place.size_bytes))
            )
        return self._sections

    def module(self, wasm_id: int) -> bytes:
        """Return the code of an embedded module. Raises F3Error if there is none."""
        if wasm_id >= len(self.module_sections):
            count = len(self.module_sections)
            raise F3Error(f"module {wasm_id} is needed, but the file has only {count} modules, counted from 0")
        section = self.module_sections[wasm_id]
        return bytes(self.source.read(section.offset, section.size_bytes))

    def decoder(self, unit: EncUnit) -> Decoder:
        """Return the decoder of a unit. Raises F3Error if the file does not contain the module that decodes it."""
        if unit.wasm_id is None:
            no_module = f"an EncUnit with encoding {unit.encoding} names no module that decodes it"
            raise F3Error(_NO_CODE if unit.encoding == metadata.CASCADE else no_module)
        return self._decoder(unit.wasm_id)

    def _decoder(self, wasm_id: int) -> Decoder:
        if wasm_id not in self._decoders:
            self._decoders[wasm_id] = self.coding.Decoder(self.module(wasm_id), prefer=self._prefer)
        return self._decoders[wasm_id]

    def module_info(self, wasm_id: int) -> ModuleInfo:
        """Describe a module. Raises F3Error."""
        code = self.module(wasm_id)
        encoding = str(version_of(code) or "")
        return ModuleInfo(wasm_id, len(code), xxhash.xxh64_intdigest(code), encoding, self._decoder(wasm_id).how)

    # --- zone maps -------------------------------------------------------------------------------------------------

    @cached_property
    def zones(self) -> ZoneMaps | None:
        """The zone maps (bounds of values in ranges of rows). None if the file has none, or has them in an unknown
        version. Raises F3Error."""
        place = self.footer.optional_section(SECTION)
        if place is None:
            return None
        rows = int(group_starts(self.footer.row_counts)[-1])
        return read_zones(self.source.read(place.offset, place.size_bytes), self.schema, rows)

    # --- shared dictionaries ---------------------------------------------------------------------------------------

    def known_dictionary(self, number: int, arrow_type: pa.DataType) -> pa.Array | None:
        """Return a shared dictionary that was decoded earlier, or None."""
        return self._dictionaries.get((number, arrow_type))

    def keep_dictionary(self, number: int, arrow_type: pa.DataType, values: pa.Array) -> None:
        """Remember a decoded dictionary."""
        self._dictionaries[number, arrow_type] = values

    def dictionary_parts(self, number: int, arrow_type: pa.DataType) -> list[tuple[StoredColumn, Held]]:
        """Read a shared dictionary, which consists of one or more parts. Return the units of each part, with their
        bytes. Raises F3Error if no dictionary has this id and type."""
        if number >= self.footer.dictionaries:
            count = self.footer.dictionaries
            raise F3Error(f"shared dictionary {number} is needed, but the file has {count}, counted from 0")
        if self._dictionary_types is None:
            self._dictionary_types = read_schema(self.footer.dictionary_schema)
        types = self._dictionary_types
        # The F3 authors' program drops the time zone of the dictionary's type.
        if number >= len(types):
            raise F3Error(f"shared dictionary {number} has no type; only {len(types)} types are stored, counted from 0")
        held = types.field(number).type
        if _without_zone(held) != _without_zone(arrow_type):
            raise F3Error(f"shared dictionary {number} must hold {arrow_type}, but holds {held}")
        parts = []
        for place in self.footer.dictionary(number):
            chunk = self.footer.dictionary_chunk(place)
            if chunk.scope != metadata.NO_DICTIONARY:
                raise F3Error(f"shared dictionary {number}: its IOUnit {place} uses a dictionary, which is not allowed")
            stored = stored_column([chunk], f"shared dictionary {number}", self._metadata_start)
            span = (chunk, chunk.offset, chunk.offset + chunk.size_bytes)
            parts.append((stored, self.fetched({key_of(chunk): span})))
        return parts

    @cached_property
    def dictionary_faults(self) -> tuple[str, ...]:
        """Faults of the shared dictionaries.

        To find them, the first bytes of some units marked as compressed are read.
        """
        try:
            stored = [
                stored_column([chunk], f"shared dictionary IOUnit {place}", self._metadata_start)
                for place, chunk in enumerate(self.footer.dictionary_chunks())
            ]
            packed = [
                unit
                for column in stored
                for unit in column.units
                if unit.values.compression != metadata.UNCOMPRESSED and unit.rows
            ][:_MOST_FRONTS]
            spans = [(unit.start, min(unit.start + FRONT_BYTES, unit.stop)) for unit in packed]
            found = io.read_spans(self.source, (span for span in spans if span[0] < span[1]))
        except F3Error as error:
            return (str(error),)
        raw = [
            (unit.start, unit.values)
            for unit, span in zip(packed, spans, strict=True)
            if is_no_packed_unit(bytes(found.get(span, b"")), unit.values)
        ]
        return (raw_units(raw, len(packed)),) if raw else ()


_NO_CODE = (
    "is in the built-in encoding of the F3 authors' program, and the file does not contain the code that decodes this "
    "encoding; write the file again with that program's option write_built_in_wasm"
)


def read_schema(message: memoryview) -> pa.Schema:
    """Return the schema in an IPC message that lacks the usual 8-byte prefix. Raises F3Error."""
    padded = (len(message) + 7) // 8 * 8
    framed = b"".join((b"\xff\xff\xff\xff", padded.to_bytes(4, "little"), message, bytes(padded - len(message))))
    try:
        return pa.ipc.read_schema(pa.py_buffer(framed))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise F3Error(f"the schema cannot be read: {error}") from None


def group_starts(counts: Sequence[int]) -> np.ndarray:
    """Return an array with the first row of each row group, followed by the number of rows of the file."""
    return np.concatenate(([0], np.cumsum(np.asarray(counts, np.int64))))


def _without_zone(arrow_type: pa.DataType) -> pa.DataType:
    return pa.timestamp(arrow_type.unit) if pa.types.is_timestamp(arrow_type) else arrow_type
