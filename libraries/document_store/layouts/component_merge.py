"""Merge components: first keys, then each output leaf column by column (the vertical merge of the paper, 4.5).

If no other component has keys in the range of a leaf, the leaf's stored bytes are copied. Other leaves are merged.
Memory holds the keys of some leaves, one column of each component, and one encoded output leaf. Single rows are copied
without decoding them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.amax import AmaxLeaf, chunk_of, merged_chunk
from libraries.document_store.layouts.component import StoredComponent
from libraries.document_store.layouts.component_writer import ComponentWriter, MegaLeaves, RowLeaves, fitting_entries
from libraries.document_store.layouts.layout import ComponentInfo, ComponentOptions, FileWriter, KeyKind
from libraries.document_store.layouts.mega_leaf import Chunk
from libraries.document_store.layouts.reconciliation import ComponentCursor, LeafType, Picked, joined, reconcile
from libraries.document_store.layouts.rows import RowsLeaf
from libraries.document_store.layouts.segments import Copied, segments
from libraries.document_store.layouts.vector import names_of
from libraries.document_store.record_selection import absent, stand_in, take_of
from libraries.document_store.schema import Schema, merged
from libraries.document_store.shredding import Column

_KEPT_PAGES = 8
"""Pages kept per input leaf (1 MiB), because neighbouring small columns share pages."""


def merge_components(
    writer: FileWriter, components: Sequence[StoredComponent], drop_antimatter: bool, options: ComponentOptions
) -> ComponentInfo:
    """Merge components, given newest first, and write the remaining entries as one component.

    `drop_antimatter` drops deletion markers. Set it only if the oldest component of the store is included, because a
    marker hides older versions of its document. Raises CorruptError and the errors of the writer.
    """
    first = components[0]
    if any((component.layout, component.key_kind) != (first.layout, first.key_kind) for component in components):
        raise ValueError("only components of the same layout and kind of keys can be merged")
        # Each input is read once and then replaced, so caching it would only evict what queries use.
    components = [component.without_cache() for component in components]
    schema = first.schema
    for component in components[1:]:
        schema = merged(schema, component.schema)
    _check_names(components, schema)
    out = ComponentWriter(writer, first.layout, first.key_kind, options)
    for segment in segments([component.bounds(options, drop_antimatter) for component in components]):
        if isinstance(segment, Copied):
            components[segment.component].copy_leaf(segment.leaf, out)
        elif first.layout == "amax":
            mega_leaves = [
                [component.mega_leaf(number) for number in numbers]
                for component, numbers in zip(components, segment.leaves, strict=True)
            ]
            _merge_columns(out, _sources(mega_leaves, first.key_kind), schema, drop_antimatter, options)
        else:
            row_leaves = [
                [component.row_leaf(number) for number in numbers]
                for component, numbers in zip(components, segment.leaves, strict=True)
            ]
            _merge_rows(out, _sources(row_leaves, first.key_kind), schema, drop_antimatter)
    return out.finish(schema)


def _sources(leaves: Sequence[Sequence[LeafType]], kind: KeyKind) -> list[ComponentCursor[LeafType]]:
    return [ComponentCursor(list(each), kind) for each in leaves if each]


def _check_names(components: Sequence[StoredComponent], schema: Schema) -> None:
    """Raise CorruptError unless names have the same numbers in all schemas. Rows of `vector` are copied as stored, so
    the numbers of names in these rows must stay valid."""
    names = names_of(schema)
    for component in components:
        own = names_of(component.schema)
        if component.layout == "vector" and names[: len(own)] != own:
            raise CorruptError(
                f"{component.name}: a field name does not have the same number as in the newest component"
            )


def _merge_rows(
    out: ComponentWriter, sources: Sequence[ComponentCursor[RowsLeaf]], schema: Schema, drop_antimatter: bool
) -> None:
    leaves = RowLeaves(out)
    columns = len(schema.leaves)
    for picked in reconcile(sources, drop_antimatter):
        rows: list[memoryview | None] = [None] * len(picked)
        for component, source in enumerate(sources):
            # Positions in the output and in the component ascend together, so each leaf is read once.
            places = np.flatnonzero((picked.components == component) & ~picked.antimatter)
            for number, chosen, own in _by_leaf(source, picked.entries[places]):
                pieces = source.leaf(number).stored_rows(own)
                for place, piece in zip(places[chosen].tolist(), pieces, strict=True):
                    rows[place] = piece
        leaves.add(picked.keys, rows, columns)
        for component, source in enumerate(sources):
            _release(source, picked.entries[picked.components == component])
    leaves.finish(columns)


def _by_leaf(source: ComponentCursor[RowsLeaf], entries: np.ndarray) -> Iterator[tuple[int, slice, np.ndarray]]:
    """Split ascending entries of a component by leaf. Yield for each leaf its number, the slice of `entries` that is in
    the leaf, and the positions of these entries within the leaf."""
    if not len(entries):
        return
    numbers = np.searchsorted(source.starts, entries, side="right") - 1
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(entries)]
    for start, end in itertools.pairwise(cuts):
        number = int(numbers[start])
        yield number, slice(start, end), entries[start:end] - source.starts[number]


def _release(source: ComponentCursor[RowsLeaf] | ComponentCursor[AmaxLeaf], entries: np.ndarray) -> None:
    """Release all leaves before the leaf that holds the last entry. These leaves are completely merged."""
    if len(entries):
        source.release(int(np.searchsorted(source.starts, entries[-1], side="right")) - 1)


def _merge_columns(
    out: ComponentWriter,
    sources: Sequence[ComponentCursor[AmaxLeaf]],
    schema: Schema,
    drop_antimatter: bool,
    options: ComponentOptions,
) -> None:
    leaves = MegaLeaves(out)
    stand_ins = _StandIns(schema)
    for picked, row_bytes in _leaves_of_output(sources, len(schema.leaves), drop_antimatter, options):
        inputs = _Inputs(sources, picked, stand_ins)
        leaves.add(picked.keys, picked.antimatter, len(schema.leaves), inputs.chunks(), row_bytes)
        for component, source in enumerate(sources):
            _release(source, picked.entries[picked.components == component])


def _leaves_of_output(
    sources: Sequence[ComponentCursor[AmaxLeaf]], columns: int, drop_antimatter: bool, options: ComponentOptions
) -> Iterator[tuple[Picked, int]]:
    """Yield the remaining entries of each output leaf, and the approximate bytes of the rows of these entries."""
    # The size of an entry is unknown, so use the average bytes per record of each leaf.
    sizes = [np.array([leaf.row_bytes / leaf.count for leaf in source.leaves if leaf]) for source in sources]
    waiting: list[Picked] = []
    for part in reconcile(sources, drop_antimatter):
        rest = joined([*waiting, part]) if waiting else part
        while True:
            ends = np.cumsum(_sizes(rest, sources, sizes))
            end = min(options.leaf_records, int(np.searchsorted(ends, options.leaf_bytes)) + 1)
            end = min(end, fitting_entries(rest.keys[: end + 1], columns))
            if end >= len(rest):
                break
            yield rest.part(slice(0, end)), int(ends[end - 1])
            rest = rest.part(slice(end, None))
        waiting = [rest]
    if waiting:
        yield waiting[0], int(_sizes(waiting[0], sources, sizes).sum())


def _sizes(picked: Picked, sources: Sequence[ComponentCursor[AmaxLeaf]], sizes: Sequence[np.ndarray]) -> np.ndarray:
    out = np.zeros(len(picked))
    for component, source in enumerate(sources):
        own = np.flatnonzero((picked.components == component) & ~picked.antimatter)
        out[own] = sizes[component][np.searchsorted(source.starts, picked.entries[own], side="right") - 1]
    return out


class _StandIns:
    """Finds stand-ins: if a leaf was written before a column existed, the tokens of that column are derived from
    another column of the leaf, the stand-in."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.of = lru_cache(maxsize=None)(self._of)

    def _of(self, number: int, columns: int) -> int | None:
        beside = stand_in(self.schema, self.schema.leaves[number], columns)
        return None if beside is None else beside.number


class _Inputs:
    """The input leaves of one output leaf, and their selected records."""

    def __init__(self, sources: Sequence[ComponentCursor[AmaxLeaf]], picked: Picked, stand_ins: _StandIns) -> None:
        self._stand_ins = stand_ins
        self._leaves: list[AmaxLeaf] = []
        self._records = np.empty(len(picked), np.int64)
        records_before = 0
        for component, source in enumerate(sources):
            places = np.flatnonzero((picked.components == component) & ~picked.antimatter)
            if not len(places):
                continue
            entries = picked.entries[places]
            first, last = (np.searchsorted(source.starts, entries[[0, -1]], side="right") - 1).tolist()
            leaves = [source.leaf(number) for number in range(first, last + 1)]
            present = ~np.concatenate([leaf.keys()[1] for leaf in leaves])
            ranks = np.cumsum(present) - 1
            self._records[places] = records_before + ranks[entries - source.starts[first]]
            records_before += int(present.sum())
            self._leaves += leaves
        self._records = self._records[~picked.antimatter]
        for leaf in self._leaves:
            leaf.keep_pages = _KEPT_PAGES

    def chunks(self) -> Iterator[Chunk]:
        """Yield the encoded columns. They are in the order of their chunks in the input files, so that adjacent pages
        are read together."""
        every = range(1, len(self._stand_ins.schema.leaves))
        for number in dict.fromkeys([*(n for leaf in self._leaves for n in leaf.order_of_columns()), *every]):
            if not any(self._has(leaf, number) for leaf in self._leaves):
                continue
            chunk = self._merged(number)
            if chunk is None:
                column = take_of([self._piece(leaf, number) for leaf in self._leaves], self._records)
                chunk = chunk_of(column)
            if chunk is not None and chunk.data:
                yield chunk

    def _merged(self, number: int) -> Chunk | None:
        """Merge the stored chunks of a column. Return None if an input leaf is older than the column and needs a
        stand-in."""
        stored = []
        for leaf in self._leaves:
            is_older = number >= len(leaf.schema.leaves)
            if is_older and self._has(leaf, number):
                return None
            stored.append(None if is_older else leaf.chunk(number))
        counts = [leaf.count - leaf.antimatter_count for leaf in self._leaves]
        return merged_chunk(self._stand_ins.schema.leaves[number], stored, counts, self._records)

    def _has(self, leaf: AmaxLeaf, number: int) -> bool:
        columns = len(leaf.schema.leaves)
        if number < columns:
            return leaf.has_column(number)
        beside = self._stand_ins.of(number, columns)
        return beside is not None and leaf.has_column(beside)

    def _piece(self, leaf: AmaxLeaf, number: int) -> Column:
        """Return a column of one input leaf. If the leaf is older than the column, derive the column from its
        stand-in."""
        schema, columns = self._stand_ins.schema, len(leaf.schema.leaves)
        if number < columns:
            return leaf.columns([number])[number]
        wanted = schema.leaves[number]
        beside = self._stand_ins.of(number, columns)
        present = leaf.count - leaf.antimatter_count
        if beside is None:
            return absent(wanted, None, present, schema)
        return absent(wanted, leaf.columns([beside])[beside], present, schema)
