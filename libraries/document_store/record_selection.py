"""Select records of columns, combine columns for a merge, and make columns for fields that old records lack.

These functions work on tokens (levels), without decoding bytes. If a leaf is in arrays, its record ends with a token
whose level is below the level of the outermost array. Otherwise each token is a record.
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


def record_starts(column: Column | CodedColumn) -> np.ndarray:
    """Return the position of the first token of each record, and the end of the last record (int64).

    Raises CorruptError if the last record is incomplete.
    """
    if not column.leaf.array_levels:
        return np.arange(len(column.levels) + 1, dtype=np.int64)
    ends = np.flatnonzero(column.masked < column.leaf.array_levels[0])
    if len(column.levels) and (not len(ends) or ends[-1] != len(column.levels) - 1):
        raise CorruptError(f"column {column.leaf.number} ({column.leaf.path}) ends inside an array")
    starts = np.zeros(len(ends) + 1, np.int64)
    starts[1:] = ends + 1
    return starts


def value_starts(column: Column) -> np.ndarray:
    """Return the number of values before each token, and the total (int64). Raises CorruptError if the number of values
    does not fit the tokens."""
    starts = np.zeros(len(column.levels) + 1, np.int64)
    np.cumsum(column.present, out=starts[1:])
    if starts[-1] != len(column.values):
        raise CorruptError(f"column {column.leaf.number} ({column.leaf.path}) has {len(column.values)} values, "
                   f"but its tokens require {starts[-1]}")  # fmt: skip
    return starts


def record_count(column: Column | CodedColumn) -> int:
    """Return the number of records of a column. The last record may be incomplete."""
    arrays = column.leaf.array_levels
    return int(np.count_nonzero(column.masked < arrays[0])) if arrays else len(column.levels)


def take(column: Column, ordinals: np.ndarray) -> Column:
    """Return the records at these positions (int64, any order) as a column. Raises CorruptError for missing records."""
    ordinals = np.asarray(ordinals, np.int64)
    if len(ordinals) == record_count(column) and np.array_equal(ordinals, np.arange(len(ordinals))):
        return column
    return take_of([column], ordinals)


def take_coded(column: Column | CodedColumn, ordinals: np.ndarray) -> Column | CodedColumn:
    """Like `take`, for a column whose texts may be represented by codes."""
    if isinstance(column, Column):
        return take(column, ordinals)
    tokens = ordinals
    if column.leaf.array_levels:
        starts = record_starts(column)
        tokens = _spans(starts[ordinals], starts[ordinals + 1])
    return CodedColumn(column.leaf, column.levels[tokens], column.codes[tokens], column.different)


def take_of(columns: Sequence[Column], ordinals: np.ndarray) -> Column:
    """Like `take`, for several columns of one leaf. Records are numbered across all columns."""
    ordinals = np.ascontiguousarray(ordinals, np.int64)
    taken = native.take_of(columns, ordinals) if kernels.NATIVE else None
    # The code below explains what C refused.
    return _take(joined(columns), ordinals) if taken is None else taken


def _take(column: Column, ordinals: np.ndarray) -> Column:
    starts = record_starts(column)
    outside = ordinals[(ordinals < 0) | (ordinals >= len(starts) - 1)]
    if len(outside):
        raise CorruptError(f"column {column.leaf.number} ({column.leaf.path}) has {len(starts) - 1} records, "
                   f"but record {outside[0]} was requested")  # fmt: skip
    before = value_starts(column)
    if column.leaf.array_levels:
        tokens = _spans(starts[ordinals], starts[ordinals + 1])
    else:
        tokens = ordinals
    kept = tokens[column.present[tokens]]
    return Column(column.leaf, column.levels[tokens], _values_at(column.values, before[kept]))


def gather(columns: Sequence[Column], runs: np.ndarray) -> Column:
    """Gather records of several columns of the same schema leaf into one column.

    `runs` is int64 of shape (n, 2). Each row of `runs` has the number of a column and a count: take the next `count`
    records of this column. To skip `count` records instead, the second number is ~count. Each column is read from its
    start. Raises CorruptError if a column has too few records.
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
    """Concatenate the records of columns of one leaf."""
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
    """Return the numbers from start to end (exclusive) of each pair, one range after another (int64)."""
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
    """Return a leaf that replaces `leaf` in an older component, which has only the first `leaves_present` schema
    leaves: `absent` derives the tokens of `leaf` from the tokens of the returned leaf. Return None if `absent` needs
    only the number of records."""
    node = schema.leaf_nodes[leaf.number]
    if schema.nodes[node].kind is ValueKind.REST:
        return None
    while True:
        parent, name = schema.nodes[node].parent, schema.nodes[node].name
        # A leaf at the same position shows its nulls. A leaf below the same parent shows only the levels above.
        for above in (name, ...) if schema.nodes[node].kind is not ValueKind.MARKER else (...,):
            beside = _shallowest(schema, parent, above, leaves_present)
            if beside is not None:
                return beside
        if parent == ROOT:
            return None
        node = parent


def _shallowest(schema: Schema, parent: int, name: object, leaves_present: int) -> Leaf | None:
    """Return the leaf below a position that is inside the fewest arrays, among the first `leaves_present` leaves. The
    position is the field `name` of `parent`; if `name` is `...`, any place below `parent`. Never return the key or
    REST, whose tokens are of another kind."""
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
    """Return a column for `count` records that are older than the leaf. The column has the tokens that the shredder
    writes for absent values.

    Pass as `beside` the column of the leaf that `stand_in` returned, or None.
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
    # A value inside an array below the shared node is one token; its end may be that of an outer array (3.1).
    is_inside = masked >= inner
    first_inside = is_inside & ~np.concatenate([[False], is_inside[:-1]])
    ends_inside = ~is_inside & np.concatenate([[False], is_inside[:-1]])
    own_end = ends_inside & (masked == inner - 1)
    return Column(leaf, tokens[(~is_inside | first_inside) & ~own_end], nothing)


def _shared(schema: Schema, leaf: Leaf, beside: Leaf) -> tuple[int, bool]:
    """Return the level of the two leaves' deepest common ancestor, and whether both leaves are at the same position
    below it."""
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
