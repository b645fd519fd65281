"""Plan and execute a read: find the units that hold the rows, read their bytes, and assemble arrays.

A unit is an EncUnit (the smallest part of a column that can be decoded), or a local dictionary with its indices. An
IOUnit is a group of units of a column that were written together. A node is a column, or a field or items nested in it.

In top-level columns and fields of structs, single rows are selected. Inside lists, whole units are selected: the n-th
unit of the item column holds the items of the lists in the n-th unit of the list column.
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
"""Small reads are slow. Therefore, columns are added to a read until it has at least this many bytes for each row
group."""
_FEW = 8
"""Single rows are decoded ("picked") if the units that hold them have at least this many rows for each wanted row.
Otherwise decoding whole units is faster."""
_ROW_BYTES = 4096
"""A unit is read whole if it has fewer bytes than this for each wanted row. Separate reads for each row would take
longer."""
_HELD_BYTES = 1 << 22
"""Payloads (encoded units) of several columns are collected until they exceed this many bytes. Then one call picks rows
from these columns."""
_PARTS_PER_THREAD, _LEAST_PART_BYTES = 2, 1 << 18
_TEXT_RATIO = 4
"""Assumed number of decoded bytes for each stored byte of strings and nested columns. It is a guess, to divide work
among threads."""
_PARALLEL_BYTES = 1 << 26
"""A read uses several threads only if its decoded values take at least this many bytes, because starting the first
threads of a process, with their memory, takes 10 ms."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool of threads, which is kept for later reads. Arrow reuses the memory of a thread only while the
    thread lives."""
    return ThreadPoolExecutor(threads, "f3")


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


@dataclass(frozen=True)
class _Pickable:
    """A column of which single rows can be decoded.

    `units` are its units with rows. `starts` has the first row of each unit, and the end of the last. `table` describes
    the units in the decoder's format (PICKED). `are_read` marks units whose payload has to be in memory. `starts_like`
    is the same number for all columns with the same `starts`.
    """

    decoder: Decoder
    units: Sequence[Unit]
    starts: np.ndarray
    starts_like: int
    table: np.ndarray
    are_read: np.ndarray


@dataclass(frozen=True)
class _Found:
    """Wanted rows, ordered by units. `first` has the position of each unit's first wanted row, and `unit_rows` is the
    number of all rows of these units."""

    rows: Scattered
    first: np.ndarray
    unit_rows: int


@dataclass(frozen=True)
class _Chosen:
    """Rows of a column to be picked (decoded without the other rows of their units).

    `lookup` turns the decoded rows into values: for example, it looks up indices in a shared dictionary. Taking the
    values at the positions `order` puts them into the wanted order; `order` is None if they are already in it. `held`
    are payloads that have to stay in memory until the rows are decoded.
    """

    decoder: Decoder
    rows: PickedRows
    lookup: Callable[[pa.Array], pa.Array]
    order: np.ndarray | None
    held: Sequence[pa.Buffer]


class ReadPlan:
    """A read of some columns over some row groups."""

    def __init__(self, contents: Contents, nodes: Sequence[Node], groups: Sequence[int]) -> None:
        """Read the metadata of the columns. Raises F3Error if the row counts in it contradict each other."""
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
        """Yield the wanted rows of each node, as one array if possible.

        If there are enough values, up to `threads` threads are used, and a column then has several arrays. With one
        thread, columns are read in groups. Small columns share a group, so that each read is larger.
        """
        are_few = 0 < picked.count * _FEW <= self._group_rows
        few = self._few_rows(picked) if are_few else [None] * len(self._nodes)
        others = [node for node, array in zip(self._nodes, few, strict=True) if array is None]
        read = self._read(others, picked, threads)
        for array in few:
            yield next(read) if array is None else [array]

    def _read(self, nodes: Sequence[Node], picked: Picked, threads: int) -> Iterator[list[pa.Array]]:
        """Yield the wanted rows of each node, by decoding whole units."""
        if threads == 1 or picked.count == 0 or self._wanted_bytes(nodes, picked) < _PARALLEL_BYTES:
            buffer = io.ReadBuffer()
            for part, spans, size_bytes in self._parts(nodes, picked, self._contents.source.at_once_bytes):
                yield from self._read_part(part, spans, size_bytes, picked, buffer)
            return
        yield from self._read_by_threads(nodes, picked, threads)

    def _read_by_threads(self, nodes: Sequence[Node], picked: Picked, threads: int) -> Iterator[list[pa.Array]]:
        """Yield the wanted rows of each node as several arrays, one for each part of the rows.

        Threads decode the parts, which have about the same number of decoded bytes. The largest part starts first, so
        that no thread is left with a large part at the end.
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
            # After an error, threads may still read the file, so wait until they end.
            for each in read.values():
                each.cancel()
            wait(read.values())
        yield from found

    def _wanted_bytes(self, nodes: Sequence[Node], picked: Picked) -> float:
        return sum(map(self._decoded_bytes, nodes)) * picked.count / self._group_rows

    def _decoded_bytes(self, node: Node) -> int:
        """Estimate the bytes that all rows of a node take in memory. For strings the estimate is a multiple of the
        stored bytes."""
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
        """Divide the wanted rows into up to `count` shares that end where units end. Rows that are not consecutive stay
        one share."""
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
        """Yield groups of columns to read together, each with the byte ranges that it needs and their total size in
        bytes."""
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
        """Return the bytes of the EncUnits that hold the rows. EncUnits in `before` are not read again.

        Whole IOUnits are read if their checksums are verified. They are also read if the file is not local, because
        every remote read costs a request.
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
        """Yield each EncUnit that holds wanted rows, with its payload. An EncUnit of lists has two payloads and is
        yielded with each of them."""
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
        """Return the wanted rows of a node as one array."""
        return self._rows(node, picked, held)

    def edges(self) -> list[int]:
        """Return the first row of each unit and the end of the last unit. The units are those of the column with the
        fewest units."""
        starts = min((self._columns[node.numbers[0]].starts for node in self._nodes), key=len)
        return [int(edge) for edge in np.unique(starts)]

    # --- checks ----------------------------------------------------------------------------------------------------

    def _check_rows(self, node: Node, groups: Sequence[int]) -> None:
        """Check that a column has the number of rows that its row groups state.

        The items of lists are counted when they are read.
        """
        columns = node.numbers if node.pushed_down else node.numbers[:1]
        for group in groups:
            rows = self._contents.footer.row_counts[group]
            for column in columns:
                stored = self._contents.column(group, column)
                if stored.rows != rows:
                    what = f"column {node.what}"
                    raise F3Error(f"{what}: has {stored.rows} rows in row group {group}, but that row group has {rows}")
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
                raise F3Error(f"physical column {number}: its IOUnit at {following} begins inside another IOUnit")

    def _check_items(self, node: Node, ordinals: Sequence[int], counts: Sequence[int]) -> None:
        """Check the number of rows of a child's units. `counts` has the number of rows that the parent's unit with the
        same ordinal refers to."""
        column = self._columns[node.numbers[0]]
        for ordinal, count in zip(ordinals, counts, strict=True):
            rows = _unit(column, ordinal).rows
            if rows != count:
                parent = f"unit {ordinal} of the parent column"
                raise F3Error(f"column {node.what}: unit {ordinal} has {rows} rows, but {parent} refers to {count}")

    # --- bytes -----------------------------------------------------------------------------------------------------

    def _spans(self, node: Node, picked: Picked) -> dict[Key, Span]:
        """Return the byte ranges of the units that hold a node's rows. If checksums are verified, return the byte
        ranges of whole IOUnits."""
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
        """Return the units of a physical column that hold the rows, and the positions of the rows when these units are
        concatenated.

        Most columns have the same unit boundaries, so the result is kept for the next column.
        """
        starts = self._columns[number].starts
        # Read the attribute once, because another thread may replace it.
        found = self._found
        if found is None or found[0] is not picked or not np.array_equal(found[1], starts):
            found = self._found = (picked, starts, picked.located(starts))
        return found[2]

    def _ordinals(self, node: Node, picked: Picked) -> Iterator[tuple[int, list[int]]]:
        """Yield each physical column of a node, with the ordinals of the units that hold the wanted rows."""
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
        """Return the wanted rows of each column without decoding the other rows of their units.

        Return None for a column if decoding whole units is faster, or if its units, decoder or file do not support
        this.
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
        """Return the values of picked rows in the wanted order, or None if that fails. If `array` is None, the call for
        several columns did not decode these rows, and they are decoded here."""
        try:
            if array is None:
                rows = chosen.rows
                array = chosen.decoder.pick(rows.units, self._descriptor, rows.wanted, rows.arrow_type)
            array = chosen.lookup(array)
        except (F3Error, OSError, pa.ArrowInvalid):
            # Whole units are decoded instead. This reports what is broken, and splits arrays that become too long.
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
        """Return what is needed to decode single rows of a column, or None if its units do not allow it."""
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
        """Return the units with wanted rows in the decoder's format (PICKED), and the payloads that have to stay in
        memory.

        A payload is read into memory if it is compressed, if the decoder cannot read it from the file, or if many of
        its rows are wanted.
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
        """Order the wanted rows by units. Columns with the same unit boundaries share the result."""
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
        """Return the wanted rows of a top-level column, or of the field of a struct."""
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
        """Return lists of structs in the layout of the F3 authors' program. In this layout, the units of every field
        store which lists are present, and the offsets of the lists. Raises F3Error if the fields disagree."""
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
                raise F3Error(
                    f"column {node.what}: its fields disagree on which lists are present or where each begins"
                )
        with Placed(f"column {node.what}"):
            everything = pa.array(np.ones(len(fields[0]), bool))
            items = shredding.structs(node.type.value_type, everything, fields)
            return shredding.lists(node.type, present, parts, items)

    def _units(self, number: int, ordinals: Sequence[int]) -> list[Unit]:
        column = self._columns[number]
        return [_unit(column, ordinal) for ordinal in ordinals]


def _unit(column: StoredColumn, ordinal: int) -> Unit:
    if ordinal >= len(column.units):
        count = len(column.units)
        raise F3Error(f"unit {ordinal} of a column is needed, but the column has {count} units, counted from 0")
    return column.units[ordinal]


def _cut(array: pa.Array, places: Places) -> pa.Array:
    if isinstance(places, range):
        return array if len(places) == len(array) else array.slice(places.start, len(places))
    try:
        return pc.take(array, pa.array(places))
    except pa.ArrowInvalid as error:
        # A few long strings that are selected repeatedly can exceed 32-bit offsets.
        raise shredding.TooLongError(str(error)) from None
