"""Records taken out of columns: some of one column, runs of several for a merge, and columns of what was never there.

All of it goes by tokens alone: a record ends where a token lies below its outermost array. It decodes no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.errors import CorruptError
from libraries.document_store.schema import ROOT, Leaf, Schema
from libraries.document_store.shredding import native
from libraries.document_store.shredding.columns import CodedColumn, Column, Texts, Values, values_of
from libraries.document_store.values import ValueKind


def record_starts(column: Column) -> np.ndarray:
    """int64: where the tokens of each record begin, and the end of the last. Raises CorruptError when the last record
    has no end."""
    if not column.leaf.array_levels:
        return np.arange(len(column.levels) + 1, dtype=np.int64)
    ends = np.flatnonzero(column.masked < column.leaf.array_levels[0])
    if len(column.levels) and (not len(ends) or ends[-1] != len(column.levels) - 1):
        raise CorruptError(f"column {column.leaf.number} ({column.leaf.path}) ends inside an array")
    starts = np.zeros(len(ends) + 1, np.int64)
    starts[1:] = ends + 1
    return starts


def value_starts(column: Column) -> np.ndarray:
    """int64: how many values lie before each token, and the number of all. Raises CorruptError when the values are
    fewer or more than the tokens say."""
    starts = np.zeros(len(column.levels) + 1, np.int64)
    np.cumsum(column.present, out=starts[1:])
    if starts[-1] != len(column.values):
        raise CorruptError(f"column {column.leaf.number} ({column.leaf.path}) has {len(column.values)} values, "
                           f"its tokens call for {starts[-1]}")  # fmt: skip
    return starts


def record_count(column: Column | CodedColumn) -> int:
    """How many records a column has tokens of; the last one may lack its end."""
    arrays = column.leaf.array_levels
    return int(np.count_nonzero(column.masked < arrays[0])) if arrays else len(column.levels)


def take(column: Column, ordinals: np.ndarray) -> Column:
    """The records at these positions (int64, any order), as a column. Raises CorruptError where there are fewer."""
    ordinals = np.asarray(ordinals, np.int64)
    if len(ordinals) == record_count(column) and np.array_equal(ordinals, np.arange(len(ordinals))):
        return column
    return take_of([column], ordinals)


def take_of(columns: Sequence[Column], ordinals: np.ndarray) -> Column:
    """As `take`, of columns of one leaf that are not joined before: record 0 of the second follows the last of the
    first."""
    ordinals = np.ascontiguousarray(ordinals, np.int64)
    taken = native.take_of(columns, ordinals) if kernels.NATIVE else None
    # What C refuses is put into words below.
    return _take(joined(columns), ordinals) if taken is None else taken


def _take(column: Column, ordinals: np.ndarray) -> Column:
    starts = record_starts(column)
    outside = ordinals[(ordinals < 0) | (ordinals >= len(starts) - 1)]
    if len(outside):
        raise CorruptError(f"column {column.leaf.number} ({column.leaf.path}) has {len(starts) - 1} records, "
                           f"record {outside[0]} was asked for")  # fmt: skip
    before = value_starts(column)
    if column.leaf.array_levels:
        tokens = _spans(starts[ordinals], starts[ordinals + 1])
    else:
        tokens = ordinals
    kept = tokens[column.present[tokens]]
    return Column(column.leaf, column.levels[tokens], _values_at(column.values, before[kept]))


def without_antimatter(key: Column) -> Column:
    """The key's column without deleted records: those that other columns have tokens for."""
    return take(key, np.flatnonzero(key.levels))


def gather(columns: Sequence[Column], runs: np.ndarray) -> Column:
    """One column of records out of several columns of the same leaf.

    `runs` is int64 of shape (n, 2): the number of a component, and how many of its next records follow, or ~count where
    so many are left out. Each component is read from its beginning. Raises CorruptError when one has too few records.
    """
    runs = np.asarray(runs, np.int64).reshape(-1, 2)
    leaf = columns[0].leaf
    record_bases = np.zeros(len(columns) + 1, np.int64)
    np.cumsum([record_count(column) for column in columns], out=record_bases[1:])
    counts = np.where(runs[:, 1] < 0, ~runs[:, 1], runs[:, 1])
    firsts = np.empty(len(runs), np.int64)
    for component in range(len(columns)):
        of_it = runs[:, 0] == component
        ends = np.cumsum(counts[of_it])
        if len(ends) and ends[-1] > record_bases[component + 1] - record_bases[component]:
            raise CorruptError(f"column {leaf.number} ({leaf.path}) of component {component} has too few records")
        firsts[of_it] = record_bases[component] + ends - counts[of_it]
    copied = runs[:, 1] > 0
    ordinals = _spans(firsts[copied], firsts[copied] + counts[copied])
    return take_of(columns, ordinals)


def joined(columns: Sequence[Column]) -> Column:
    """The records of columns of one leaf, one column's behind the other's."""
    if len(columns) == 1:
        return columns[0]
    first = columns[0]
    levels = np.concatenate([column.levels for column in columns])
    if isinstance(first.values, Texts):
        texts = [column.values for column in columns if isinstance(column.values, Texts)]
        sizes = np.cumsum([0, *(text.offsets[-1] for text in texts)])
        shifted = [text.offsets[1:] + size for text, size in zip(texts, sizes[:-1], strict=True)]
        offsets = np.concatenate([np.zeros(1, np.int64), *shifted])
        return Column(first.leaf, levels, Texts(offsets, np.concatenate([text.data for text in texts])))
    arrays = [column.values for column in columns if isinstance(column.values, np.ndarray)]
    return Column(first.leaf, levels, np.concatenate(arrays))


def _spans(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """int64: all numbers of [start, end) for each pair, one pair after the other."""
    lengths = ends - starts
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    return np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)


def _values_at(values: Values, places: np.ndarray) -> Values:
    if isinstance(values, np.ndarray):
        return values[places]
    starts, ends = values.offsets[places], values.offsets[places + 1]
    offsets = np.zeros(len(places) + 1, np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    if len(places) and np.array_equal(starts[1:], ends[:-1]):
        return Texts(offsets, values.data[starts[0] : ends[-1]])
    return Texts(offsets, values.data[_spans(starts, ends)])


def stand_in(schema: Schema, leaf: Leaf, leaves_present: int) -> Leaf | None:
    """Which leaf a component must read to know the tokens of one that came later, when it has only the first
    `leaves_present` leaves of the schema. None: it needs none, for only the count of records matters."""
    node = schema.leaf_nodes[leaf.number]
    if schema.nodes[node].kind is ValueKind.REST:
        return None
    while True:
        parent, name = schema.nodes[node].parent, schema.nodes[node].name
        # A leaf of the same position knows its nulls, one below the same parent all that lies above.
        for above in (name, ...) if schema.nodes[node].kind is not ValueKind.MARKER else (...,):
            beside = _shallowest(schema, parent, above, leaves_present)
            if beside is not None:
                return beside
        if parent == ROOT:
            return None
        node = parent


def _shallowest(schema: Schema, parent: int, name: object, leaves_present: int) -> Leaf | None:
    """Of the leaves below a position (or, for `...`, below the whole node `parent`) that are there, the one in the
    fewest arrays; never the key or the rest, whose tokens are of another kind."""
    found = None
    for leaf in schema.leaves[1:leaves_present]:
        node = below = schema.leaf_nodes[leaf.number]
        while below != parent and below != ROOT:
            node, below = below, schema.nodes[below].parent
        if below != parent or leaf.kind is ValueKind.REST or (parent == ROOT and name is ...):
            continue
        if name is not ... and (schema.nodes[node].name != name or schema.nodes[node].kind is ValueKind.MARKER):
            continue
        if found is None or len(leaf.array_levels) < len(found.array_levels):
            found = leaf
    return found


def absent(leaf: Leaf, beside: Column | None, count: int, schema: Schema) -> Column:
    """The column of a leaf that came after these `count` records: tokens as the shredder gives to what is not there.

    `beside` is the column of the leaf that `stand_in` named, None where it named none.
    """
    nothing = values_of(leaf.kind, [])
    if beside is None:
        return Column(leaf, np.zeros(count, np.uint8), nothing)
    shared, same_position = _shared(schema, leaf, beside.leaf)
    inner = next((level for level in beside.leaf.array_levels if level > shared), None)
    masked, is_null = beside.masked, beside.levels >= beside.leaf.null_flag
    tokens = np.minimum(masked, np.uint8(shared))
    kept_null = is_null & ((masked < shared) | ((masked == shared) & same_position))
    tokens[kept_null] |= np.uint8(leaf.null_flag)
    if inner is None:
        return Column(leaf, tokens, nothing)
    # What lies inside an array below the shared node is one token; its end may be that of an array further out (3.1).
    is_inside = masked >= inner
    first_inside = is_inside & ~np.concatenate([[False], is_inside[:-1]])
    ends_inside = ~is_inside & np.concatenate([[False], is_inside[:-1]])
    own_end = ends_inside & (masked == inner - 1)
    return Column(leaf, tokens[(~is_inside | first_inside) & ~own_end], nothing)


def _shared(schema: Schema, leaf: Leaf, beside: Leaf) -> tuple[int, bool]:
    """The level of the deepest node that both lie below, and whether they lie in one position of it."""
    ways = []
    for each in (leaf, beside):
        way = [schema.leaf_nodes[each.number]]
        while way[-1] != ROOT:
            way.append(schema.nodes[way[-1]].parent)
        ways.append(way[::-1])
    depth = 0
    while ways[0][depth + 1 : depth + 2] == ways[1][depth + 1 : depth + 2]:
        depth += 1
    one, two = (schema.nodes[way[depth + 1]] for way in ways)
    markers = ValueKind.MARKER in (one.kind, two.kind)
    return schema.levels[ways[0][depth]], one.name == two.name and not markers
