"""Plan and execute a read: find the units that hold the rows, read their bytes, and assemble arrays.

Top-level columns and fields of structs are selected by rows. The content of lists is selected by whole units, because
the items of a list unit are in the item column's unit with the same ordinal.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.f3.columns import shredding
from libraries.f3.columns.memory_layout import TEXT, shape_of
from libraries.f3.columns.rows import Picked, Places, Scattered, scattered
from libraries.f3.columns.shredding import Node
from libraries.f3.columns.values import Values
from libraries.f3.container import framing, io, metadata
from libraries.f3.container.contents import Contents, Held, Span
from libraries.f3.container.metadata import EncUnit
from libraries.f3.container.units import MOST_UNIT_ROWS, Key, StoredColumn, Unit, joined, key_of
from libraries.f3.decoders.native import PICKED, PickedRows
from libraries.f3.encodings.coders import Decoder
from libraries.f3.errors import F3Error, Placed

_GROUP_BYTES = 256 * 1024
"""Smallest read in a row group, unless the row group has fewer bytes."""
_FEW = 8
"""Rows are picked if their units have at least this many times as many. Otherwise decoding whole units is faster."""
_ROW_BYTES = 4096
"""A unit is read whole if it has fewer bytes than this for each wanted row, because reads for each row take longer."""
_HELD_BYTES = 1 << 22
"""Payloads that are in memory while rows are picked from several columns together."""
_PARTS_PER_THREAD, _LEAST_PART_BYTES = 2, 1 << 18
_TEXT_RATIO = 4
"""Decoded bytes of strings, and of nested columns, for each stored byte: a guess, to divide work among threads."""
_PARALLEL_BYTES = 1 << 26
"""Fewer decoded bytes are read by one thread: the first threads of a process, and their memory, take 10 ms to start."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that are kept for the next read, because Arrow reuses a thread's memory only while it lives."""
    return ThreadPoolExecutor(threads, "f3")


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


@dataclass(frozen=True)
class _Pickable:
    """A column whose rows can be picked: its units with rows, the first row of each and the end of the last, and the
    units as the decoder wants them. `are_read` marks those whose payload has to be in memory. Columns with equal starts
    have the same `starts_like`."""

    decoder: Decoder
    units: Sequence[Unit]
    starts: np.ndarray
    starts_like: int
    table: np.ndarray
    are_read: np.ndarray


@dataclass(frozen=True)
class _Found:
    """Wanted rows by units, the place of each unit's first one, and the rows that these units have together."""

    rows: Scattered
    first: np.ndarray
    unit_rows: int


@dataclass(frozen=True)
class _Chosen:
    """Rows of a column that are picked.

    `lookup` turns what is picked into values, which `order` puts into the order in which they are wanted (None if it is
    the same). `held` are payloads that stay in memory until then.
    """

    decoder: Decoder
    rows: PickedRows
    lookup: Callable[[pa.Array], pa.Array]
    order: np.ndarray | None
    held: Sequence[pa.Buffer]


class ReadPlan:
    """A read of some columns over some row groups."""

    def __init__(self, contents: Contents, nodes: Sequence[Node], groups: Sequence[int]) -> None:
        """Read the columns' metadata. Raises F3Error if their counts contradict each other."""
        self._contents, self._nodes = contents, nodes
        self._group_rows = sum(contents.footer.row_counts[group] for group in groups)
        self._pickables: dict[int, _Pickable | None] = {}
        self._same_starts: dict[bytes, int] = {}
        self._picked: Picked | None = None
        self._scattered_rows: dict[int, _Found] = {}
        self._found: tuple[Picked, np.ndarray, tuple[list[int], Places]] | None = None
        numbers = [number for node in nodes for number in node.numbers]
        contents.load(groups, numbers)
        self._columns = {
            number: joined([contents.column(group, number) for group in groups]) for number in dict.fromkeys(numbers)
        }
        for node in nodes:
            self._check_rows(node, groups)
        self._check_apart()

    def arrays(self, picked: Picked, threads: int) -> Iterator[list[pa.Array]]:
        """Yield the rows of each node, as one array if possible.

        Uses up to `threads` threads if there are enough values; a column then has several arrays. With one thread,
        columns are read in parts. Small columns share a part.
        """
        are_few = 0 < picked.count * _FEW <= self._group_rows
        few = self._few_rows(picked) if are_few else [None] * len(self._nodes)
        others = [node for node, array in zip(self._nodes, few, strict=True) if array is None]
        read = self._read(others, picked, threads)
        for array in few:
            yield next(read) if array is None else [array]

    def _read(self, nodes: Sequence[Node], picked: Picked, threads: int) -> Iterator[list[pa.Array]]:
        """Yield the rows of nodes whose units are decoded whole."""
        if threads == 1 or picked.count == 0 or self._wanted_bytes(nodes, picked) < _PARALLEL_BYTES:
            buffer = io.ReadBuffer()
            for part, spans, size_bytes in self._parts(nodes, picked, self._contents.source.at_once_bytes):
                yield from self._read_part(part, spans, size_bytes, picked, buffer)
            return
        yield from self._read_by_threads(nodes, picked, threads)

    def _read_by_threads(self, nodes: Sequence[Node], picked: Picked, threads: int) -> Iterator[list[pa.Array]]:
        """Yield the rows of nodes, each as one array per part of its rows.

        Parts have about the same decoded bytes. The largest start first, so that no thread waits long for the last one.
        """
        weights = [self._decoded_bytes(node) for node in nodes]
        part_bytes = max(sum(weights) // (_PARTS_PER_THREAD * threads), _LEAST_PART_BYTES, 1)
        parts = [
            (weight // math.ceil(weight / part_bytes), place, rows)
            for place, (node, weight) in enumerate(zip(nodes, weights, strict=True))
            for rows in self._shares(node, picked, math.ceil(weight / part_bytes))
        ]
        own = threading.local()

        def read_part(place: int, rows: Picked) -> list[pa.Array]:
            if not hasattr(own, "buffer"):
                own.buffer = io.ReadBuffer()
            spans = self._spans(nodes[place], rows)
            size_bytes = sum(stop - start for _, start, stop in spans.values())
            return self._read_part([nodes[place]], spans, size_bytes, rows, own.buffer)[0]

        order = sorted(range(len(parts)), key=lambda number: -parts[number][0])
        pool = _pool(threads)
        read = {number: pool.submit(read_part, *parts[number][1:]) for number in order}
        found: list[list[pa.Array]] = [[] for _ in nodes]
        try:
            for number, (_, place, _) in enumerate(parts):
                found[place] += read[number].result()
        finally:
            # After an error, parts that were begun still read the file.
            for each in read.values():
                each.cancel()
            wait(read.values())
        yield from found

    def _wanted_bytes(self, nodes: Sequence[Node], picked: Picked) -> float:
        return sum(map(self._decoded_bytes, nodes)) * picked.count / self._group_rows

    def _decoded_bytes(self, node: Node) -> int:
        """Return about how many bytes the rows of a node take in memory. Strings take a few times what is stored."""
        total = 0
        for each in node.walk():
            if each.pushed_down:
                continue
            column = self._columns[each.column]
            width = shape_of(each.type).width_bytes if not each.children and shape_of(each.type).kind != TEXT else 0
            stored = sum(chunk.size_bytes for chunk in column.chunks)
            total += column.rows * width if width else max(_TEXT_RATIO * stored, column.rows)
        return max(total, 1)

    def _shares(self, node: Node, picked: Picked, count: int) -> list[Picked]:
        """Divide consecutive rows into up to `count` shares that end where units do."""
        wanted = picked.wanted
        if count < 2 or not isinstance(wanted, range):
            return [picked]
        starts = self._columns[node.numbers[0]].starts
        middles = np.linspace(wanted.start, wanted.stop, count + 1)[1:-1]
        nearest = np.unique(starts[np.searchsorted(starts, middles)])
        edges = [wanted.start, *(int(edge) for edge in nearest if wanted.start < edge < wanted.stop), wanted.stop]
        return [Picked(picked.groups, range(start, stop)) for start, stop in pairwise(edges)]

    def _parts(
        self, nodes: Sequence[Node], picked: Picked, at_once_bytes: int
    ) -> Iterator[tuple[list[Node], dict[Key, Span], int]]:
        """Yield columns to read together, the byte spans that they need, and their size in bytes."""
        at_once_bytes = max(at_once_bytes, _GROUP_BYTES * len(picked.groups))
        first = 0
        while first < len(nodes):
            spans: dict[Key, Span] = {}
            last, size_bytes = first, 0
            while last < len(nodes) and (last == first or size_bytes < at_once_bytes):
                needed = self._spans(nodes[last], picked)
                spans.update(needed)
                size_bytes += sum(stop - start for _, start, stop in needed.values())
                last += 1
            yield list(nodes[first:last]), spans, size_bytes
            first = last

    def _read_part(
        self, nodes: Sequence[Node], spans: dict[Key, Span], size_bytes: int, picked: Picked, buffer: io.ReadBuffer
    ) -> list[list[pa.Array]]:
        buffer.begin(size_bytes)
        held = self._contents.fetched(spans, buffer)
        return [self._chunks(node, picked, held) for node in nodes]

    def hold(self, picked: Picked, before: Held) -> Held:
        """Read the EncUnits that hold the rows, except those in `before`.

        Reads whole IOUnits if their checksums are verified, or if the file is not local, because every remote read is a
        request.
        """
        needed: dict[Key, Span] = {}
        for node in self._nodes:
            spans = self._spans(node, picked)
            if not self._contents.source.shared_by_threads:
                whole = [chunk for chunk, _, _ in spans.values()]
                spans = {key_of(chunk): (chunk, chunk.offset, chunk.offset + chunk.size_bytes) for chunk in whole}
            needed.update(spans)
        kept = {key: before[key] for key in needed if key in before}
        return kept | self._contents.fetched({key: span for key, span in needed.items() if key not in kept})

    def payloads(self, picked: Picked) -> Iterator[tuple[EncUnit, memoryview]]:
        """Yield all EncUnits that hold rows, with their payloads. An EncUnit of a list has two payloads."""
        values = Values(self._contents, self.hold(picked, {}))
        for node in self._nodes:
            lists = {each.column for each in node.walk() if each.is_list}
            for number, ordinals in self._ordinals(node, picked):
                for ordinal in ordinals:
                    unit = _unit(self._columns[number], ordinal)
                    for stored, payload in values.payloads(unit) if unit.rows else ():
                        parts = framing.split(payload, 2) if number in lists else [payload]
                        yield from ((stored, part) for part in parts)

    def array_of(self, node: Node, picked: Picked, held: Held) -> pa.Array:
        """Return the rows of a node as one array."""
        return self._rows(node, picked, held)

    def edges(self) -> list[int]:
        """Return the first row of each unit and the end of the last, for the column with the fewest units."""
        starts = min((self._columns[node.numbers[0]].starts for node in self._nodes), key=len)
        return [int(edge) for edge in np.unique(starts)]

    # --- checks ----------------------------------------------------------------------------------------------------

    def _check_rows(self, node: Node, groups: Sequence[int]) -> None:
        """Check that columns have the rows that their row groups state.

        Items of lists are counted when they are read.
        """
        columns = node.numbers if node.pushed_down else node.numbers[:1]
        for group in groups:
            rows = self._contents.footer.row_counts[group]
            for column in columns:
                stored = self._contents.column(group, column)
                if stored.rows != rows:
                    raise F3Error(f"column {node.what}: has {stored.rows} rows in row group {group}, which has {rows}")
        if node.is_struct:
            for child in node.children:
                self._check_rows(child, groups)

    def _check_apart(self) -> None:
        """Check that no IOUnits overlap. Otherwise a file of a few bytes could claim any number of columns."""
        places = sorted(
            (chunk.offset, chunk.size_bytes, number)
            for number, column in self._columns.items()
            for chunk in column.chunks
            if chunk.size_bytes
        )
        for (offset, size_bytes, _), (following, _, number) in pairwise(places):
            if following < offset + size_bytes:
                raise F3Error(f"physical column {number}: has an IOUnit at {following}, inside another IOUnit")

    def _check_items(self, node: Node, ordinals: Sequence[int], counts: Sequence[int]) -> None:
        """Check that a child's unit has as many rows as the parent's unit with the same ordinal refers to."""
        column = self._columns[node.numbers[0]]
        for ordinal, count in zip(ordinals, counts, strict=True):
            rows = _unit(column, ordinal).rows
            if rows != count:
                raise F3Error(f"column {node.what}: unit {ordinal} has {rows} rows where {count} are referred to")

    # --- bytes -----------------------------------------------------------------------------------------------------

    def _spans(self, node: Node, picked: Picked) -> dict[Key, Span]:
        """Return the units that hold a node's rows. If checksums are verified, return whole IOUnits."""
        spans: dict[Key, Span] = {}
        for number, ordinals in self._ordinals(node, picked):
            column = self._columns[number]
            for ordinal in ordinals:
                unit = _unit(column, ordinal)
                chunk, key = unit.chunk, unit.key
                if self._contents.verifies(chunk):
                    key = key_of(chunk)
                spans[key] = (chunk, key[0], key[0] + key[1])
        return spans

    def _located(self, picked: Picked, number: int) -> tuple[list[int], Places]:
        """Return the units of a physical column that hold the rows, and the positions of the rows within these units.

        Most columns have the same unit boundaries, so the result is kept for the next column.
        """
        starts = self._columns[number].starts
        # Read the attribute once, because another thread may replace it.
        found = self._found
        if found is None or found[0] is not picked or not np.array_equal(found[1], starts):
            found = self._found = (picked, starts, picked.located(starts))
        return found[2]

    def _ordinals(self, node: Node, picked: Picked) -> Iterator[tuple[int, list[int]]]:
        """Yield the physical columns of a node with the ordinals of the units that hold its rows."""
        if node.pushed_down:
            for child in node.children:
                yield from self._ordinals(child, picked)
            return
        ordinals, _ = self._located(picked, node.column)
        if node.is_list:
            yield from ((number, ordinals) for number in node.numbers)
            return
        yield node.column, ordinals
        for child in node.children:
            yield from self._ordinals(child, picked)

    # --- few rows --------------------------------------------------------------------------------------------------

    def _few_rows(self, picked: Picked) -> list[pa.Array | None]:
        """Return rows of each column without decoding the other rows of their units.

        Return None for a column if that would not pay, or if its units, their decoder or the file do not allow it.
        """
        arrays: list[pa.Array | None] = [None] * len(self._nodes)
        # One call for many columns with the same decoder, because calls cost more than the decoding of a row.
        together: list[tuple[int, _Chosen]] = []
        held_bytes = 0

        def pick() -> None:
            if together:
                decoder = together[0][1].decoder
                found = decoder.pick_columns([each.rows for _, each in together], self._descriptor)
                for (place, each), array in zip(together, found, strict=True):
                    arrays[place] = self._completed(each, array)
            together.clear()

        for place, node in enumerate(self._nodes):
            chosen = self._chosen_rows(node, picked)
            if chosen is None:
                continue
            if together and (chosen.decoder is not together[0][1].decoder or held_bytes > _HELD_BYTES):
                pick()
                held_bytes = 0
            together.append((place, chosen))
            held_bytes += sum(payload.size for payload in chosen.held)
        pick()
        return arrays

    @property
    def _descriptor(self) -> int:
        descriptor = self._contents.source.descriptor
        return -1 if descriptor is None else descriptor

    def _completed(self, chosen: _Chosen, array: pa.Array | None) -> pa.Array | None:
        """Return the values of picked rows in their order. `array` is None if they could not be picked together."""
        try:
            if array is None:
                rows = chosen.rows
                array = chosen.decoder.pick(rows.units, self._descriptor, rows.wanted, rows.arrow_type)
            array = chosen.lookup(array)
        except (F3Error, OSError, pa.ArrowInvalid):
            # Decoding whole units says what is broken, and splits arrays that become too long.
            return None
        return array if chosen.order is None else array.take(pa.array(chosen.order))

    def _chosen_rows(self, node: Node, picked: Picked) -> _Chosen | None:
        column = self._pickable(node)
        if column is None:
            return None
        if isinstance(picked.wanted, range):
            first, last = np.searchsorted(column.starts, (picked.wanted.start, picked.wanted.stop - 1), "right") - 1
            if picked.count * _FEW > int(column.starts[last + 1] - column.starts[first]):
                return None
        found = self._scattered(picked, column)
        if picked.count * _FEW > found.unit_rows:
            return None
        try:
            table, held = self._picked_units(column, found)
            arrow_type, lookup = Values(self._contents, {}).picked(node.type, column.units[0])
        except (F3Error, OSError, pa.ArrowInvalid):
            return None
        rows = PickedRows(table, found.rows.rows, arrow_type)
        return _Chosen(column.decoder, rows, lookup, found.rows.order, held)

    def _pickable(self, node: Node) -> _Pickable | None:
        """Return what picking rows of a column needs, or None if its units do not allow it."""
        if node.column not in self._pickables:
            self._pickables[node.column] = None if node.children else self._found_pickable(node)
        return self._pickables[node.column]

    def _found_pickable(self, node: Node) -> _Pickable | None:
        column = self._columns[node.column]
        units = [unit for unit in column.units if unit.rows]
        kinds = {unit.kind for unit in units}
        if len(kinds) != 1 or units[0].kind[0] == metadata.LOCAL_DICTIONARY:
            return None
        with Placed(f"column {node.what}"):
            decoder = self._contents.decoder(units[0].values)
        if not decoder.picks_rows or any(map(self._contents.verifies, column.chunks)):
            return None
        starts = np.append(np.cumsum([unit.rows for unit in units]) - [unit.rows for unit in units], column.rows)
        table = np.zeros(len(units), PICKED)
        table["offset"] = [unit.start for unit in units]
        table["size_bytes"] = [unit.values.size_bytes for unit in units]
        table["rows"] = np.diff(starts)
        are_read = np.array([unit.values.compression != metadata.UNCOMPRESSED for unit in units])
        if self._contents.source.descriptor is None or not decoder.reads_files:
            are_read[:] = True
        return _Pickable(
            decoder, units, starts, self._same_starts.setdefault(starts.tobytes(), node.column), table, are_read
        )

    def _picked_units(self, column: _Pickable, found: _Found) -> tuple[np.ndarray, list[pa.Buffer]]:
        """Return the units as the decoder wants them, and the payloads that have to stay in memory.

        Payloads are read if they are compressed, if the file is not local, or if many of their rows are wanted.
        """
        rows = found.rows
        table = column.table[rows.units]
        table["count"], table["first"] = rows.counts, found.first
        places = np.flatnonzero(column.are_read[rows.units] | (rows.counts * _ROW_BYTES > table["size_bytes"]))
        held: list[pa.Buffer] = []
        if len(places):
            units = [column.units[unit] for unit in rows.units[places].tolist()]
            fetched = self._contents.fetched({unit.key: (unit.chunk, unit.start, unit.stop) for unit in units})
            values = Values(self._contents, fetched)
            held = [pa.py_buffer(values.payload(unit)) for unit in units]
            table["memory"][places] = [each.address for each in held]
            table["size_bytes"][places] = [each.size for each in held]
        return table, held

    def _scattered(self, picked: Picked, column: _Pickable) -> _Found:
        """Return the units of the rows. Columns with the same units share the result."""
        if self._picked is not picked:
            self._picked, self._scattered_rows = picked, {}
        found = self._scattered_rows.get(column.starts_like)
        if found is None:
            rows = scattered(picked.wanted, column.starts)
            unit_rows = int((column.starts[rows.units + 1] - column.starts[rows.units]).sum())
            found = _Found(rows, np.cumsum(rows.counts) - rows.counts, unit_rows)
            self._scattered_rows[column.starts_like] = found
        return found

    # --- arrays ----------------------------------------------------------------------------------------------------

    def _chunks(self, node: Node, picked: Picked, held: Held) -> list[pa.Array]:
        try:
            return [self._rows(node, picked, held)]
        except shredding.TooLongError:
            if picked.count < 2:
                raise
            first, second = picked.halves()
            return [*self._chunks(node, first, held), *self._chunks(node, second, held)]

    def _rows(self, node: Node, picked: Picked, held: Held) -> pa.Array:
        """Return the rows of a top-level column or of the field of a struct."""
        ordinals, places = self._located(picked, node.numbers[0])
        if not node.is_struct:
            return _cut(self._whole(node, ordinals, held), places)
        present = _cut(self._flat(node, pa.bool_(), ordinals, held), places)
        children = [self._rows(child, picked, held) for child in node.children]
        with Placed(f"column {node.what}"):
            return shredding.structs(node.type, present, children)

    def _whole(self, node: Node, ordinals: Sequence[int], held: Held) -> pa.Array:
        if node.pushed_down:
            return self._pushed_down(node, ordinals, held)
        if node.is_list:
            return self._lists(node, ordinals, held)
        if not node.is_struct:
            return self._flat(node, node.type, ordinals, held)
        present = self._flat(node, pa.bool_(), ordinals, held)
        counts = [_unit(self._columns[node.column], ordinal).rows for ordinal in ordinals]
        children = []
        for child in node.children:
            self._check_items(child, ordinals, counts)
            children.append(self._whole(child, ordinals, held))
        with Placed(f"column {node.what}"):
            return shredding.structs(node.type, present, children)

    def _flat(self, node: Node, arrow_type: pa.DataType, ordinals: Sequence[int], held: Held) -> pa.Array:
        with Placed(f"column {node.what}"):
            return Values(self._contents, held).array(arrow_type, self._units(node.column, ordinals))

    def _lists(self, node: Node, ordinals: Sequence[int], held: Held) -> pa.Array:
        with Placed(f"column {node.what}"):
            values = Values(self._contents, held)
            present, parts, _ = values.lists(node.type, self._units(node.column, ordinals), 2)
            counts = shredding.item_counts(parts)
        self._check_items(node.children[0], ordinals, counts)
        items = self._whole(node.children[0], ordinals, held)
        with Placed(f"column {node.what}"):
            return shredding.lists(node.type, present, parts, items)

    def _pushed_down(self, node: Node, ordinals: Sequence[int], held: Held) -> pa.Array:
        """Return pushed-down lists. The units of every field repeat presence and offsets of the lists, so these must
        agree."""
        fields = []
        lists = []
        for child in node.children:
            with Placed(f"column {child.what}"):
                values = Values(self._contents, held)
                units = self._units(child.column, ordinals)
                present, parts, payloads = values.lists(node.type, units, 3)
                counts = shredding.item_counts(parts)
                if max(counts, default=0) > MOST_UNIT_ROWS:
                    raise F3Error(f"a unit of {max(counts)} items exceeds the limit of {MOST_UNIT_ROWS}")
                arrays = [
                    values.decoded(payload, unit.values, child.type, count)
                    for payload, unit, count in zip(payloads, units, counts, strict=True)
                ]
                fields.append(pa.concat_arrays(arrays) if arrays else pa.array([], child.type))
                lists.append((present, parts))
        present, parts = lists[0]
        for other, others in lists[1:]:
            if not other.equals(present) or not all(map(np.array_equal, others, parts)):
                raise F3Error(f"column {node.what}: its fields do not have the same lists")
        with Placed(f"column {node.what}"):
            everything = pa.array(np.ones(len(fields[0]), bool))
            items = shredding.structs(node.type.value_type, everything, fields)
            return shredding.lists(node.type, present, parts, items)

    def _units(self, number: int, ordinals: Sequence[int]) -> list[Unit]:
        column = self._columns[number]
        return [_unit(column, ordinal) for ordinal in ordinals]


def _unit(column: StoredColumn, ordinal: int) -> Unit:
    if ordinal >= len(column.units):
        raise F3Error(f"unit {ordinal} of a column is needed; it has {len(column.units)}")
    return column.units[ordinal]


def _cut(array: pa.Array, places: Places) -> pa.Array:
    if isinstance(places, range):
        return array if len(places) == len(array) else array.slice(places.start, len(places))
    try:
        return pc.take(array, pa.array(places))
    except pa.ArrowInvalid as error:
        # A few long strings that are selected repeatedly can exceed 32-bit offsets.
        raise shredding.TooLongError(str(error)) from None
