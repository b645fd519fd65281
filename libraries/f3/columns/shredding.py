"""Convert nested columns to flat ones and back (specification section 3).

The flat columns in a file are called physical columns. They are numbered by a walk over the fields, parents before
children. A list has a column that stores which lists are present and their offsets (from 0). The columns of its items
follow. A struct has a Boolean column that stores which structs are present. The columns of its fields follow. Values
below a null list or struct stay as Arrow has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from libraries.f3.container.metadata import FLAT, LIST, STRUCT, LogicalTree
from libraries.f3.errors import F3Error

_DEEPEST = 64
_MOST_ITEMS = 2**31 - 1
"""Maximum number of items of lists with 32-bit offsets."""
_FLAT = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_interval,
    pa.types.is_decimal128,
    pa.types.is_decimal256,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_string,
    pa.types.is_large_string,
)


class TooLongError(F3Error):
    """The values of several units do not fit into one array, for example because offsets have 32 bits. The caller must
    read them in smaller parts."""


@dataclass(frozen=True, slots=True)
class Node:
    """A column, a field of a struct or the items of a list, with its name in messages, its physical column and its
    children.

    `pushed_down` marks a layout for lists of structs that only the F3 authors' program writes. The node then has no
    column. The column of each field also stores which lists are present and their offsets.
    """

    what: str
    type: pa.DataType
    column: int
    children: tuple[Node, ...] = ()
    pushed_down: bool = False

    @property
    def numbers(self) -> range:
        """The numbers of the node's physical columns, including those of its children."""
        end = self.children[-1].numbers.stop if self.children else self.column + 1
        return range(self.column, end)

    @property
    def is_list(self) -> bool:
        """Whether the node is a list with 32-bit or 64-bit offsets."""
        return is_list(self.type)

    @property
    def is_struct(self) -> bool:
        """Whether the node is a struct."""
        return bool(pa.types.is_struct(self.type))

    @property
    def tree(self) -> LogicalTree:
        """The kinds (flat, list, struct) of the node and of all nodes below it, as the footer stores them."""
        kind = LIST if self.is_list else STRUCT if self.is_struct else FLAT
        return LogicalTree(kind, tuple(child.tree for child in self.children))

    def walk(self) -> Iterator[Node]:
        """Yield this node and all nodes below it, in the order of their columns."""
        yield self
        for child in self.children:
            yield from child.walk()


def is_list(arrow_type: pa.DataType) -> bool:
    """Return whether a type is List or LargeList."""
    return bool(pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type))


def is_flat(arrow_type: pa.DataType) -> bool:
    """Return whether a type has a single physical column."""
    return any(check(arrow_type) for check in _FLAT)


def may_push_down(arrow_type: pa.DataType) -> bool:
    """Return whether the F3 authors' program may store a type as LIST_OF_STRUCT_OF_PRIMITIVE. It may do so for lists of
    structs whose fields are all flat."""
    if not is_list(arrow_type) or not pa.types.is_struct(arrow_type.value_type):
        return False
    fields = _fields(arrow_type.value_type)
    return bool(fields) and all(is_flat(field.type) for field in fields)


def node_of(field: pa.Field, column: int, *, name: str | None = None, depth: int = 0) -> Node:
    """Return the node of a field. `column` is the number of the node's first physical column. Raises F3Error if the
    type cannot be stored."""
    what = field.name if name is None else name
    if depth > _DEEPEST:
        raise F3Error(f"column {what}: nests deeper than {_DEEPEST} levels")
    if is_flat(field.type):
        return Node(what, field.type, column)
    if is_list(field.type):
        items = node_of(field.type.value_field, column + 1, name=f"{what}[]", depth=depth + 1)
        return Node(what, field.type, column, (items,))
    if pa.types.is_struct(field.type):
        children: list[Node] = []
        following = column + 1
        for part in _fields(field.type):
            child = node_of(part, following, name=f"{what}.{part.name}", depth=depth + 1)
            children.append(child)
            following = child.numbers.stop
        return Node(what, field.type, column, tuple(children))
    raise F3Error(
        f"column {what}: the type {field.type} cannot be stored in F3; cast the column to booleans, numbers, decimals "
        "(128 or 256 bits), dates, times, strings or binaries, or to lists or structs of these"
    )


def pushed_down(field: pa.Field, column: int) -> Node:
    """Return the node of a list of structs stored as LIST_OF_STRUCT_OF_PRIMITIVE, with one column per field of the
    struct."""
    parts = _fields(field.type.value_type)
    children = tuple(Node(f"{field.name}[].{part.name}", part.type, column + place) for place, part in enumerate(parts))
    return Node(field.name, field.type, column, children, pushed_down=True)


def _fields(struct: pa.DataType) -> list[pa.Field]:
    return [struct.field(place) for place in range(struct.num_fields)]


# --- shredding -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of an array that one physical column stores. `values` are the values. For structs and lists, `values`
    states whether each struct or list is present. `offsets` are the offsets of lists; None for other types."""

    node: Node
    values: pa.Array
    offsets: pa.Array | None = None


def shred(node: Node, array: pa.Array) -> Iterator[Piece]:
    """Yield the pieces of an array, in the order of the physical columns."""
    if node.is_list:
        first, offsets = _rebased(array)
        yield Piece(node, array.is_valid(), offsets)
        items = int(offsets[-1].as_py())
        yield from shred(node.children[0], array.values.slice(first, items))
    elif node.is_struct:
        yield Piece(node, array.is_valid())
        for place, child in enumerate(node.children):
            yield from shred(child, array.field(place))
    else:
        yield Piece(node, array)


def _rebased(array: pa.Array) -> tuple[int, pa.Array]:
    """Return the position of the first item that a list array refers to, and the offsets relative to that item."""
    width = np.int64 if pa.types.is_large_list(array.type) else np.int32
    if len(array) == 0:
        return 0, pa.array(np.zeros(1, width))
    # If the offsets begin at 0, return them without a copy.
    offsets = array.offsets.to_numpy()
    first = int(offsets[0])
    return first, pa.array(offsets - width(first)) if first else array.offsets


# --- assembly ------------------------------------------------------------------------------------------------------


def rows_alone(schema: pa.Schema, rows: int) -> pa.Table:
    """Return a table that has rows but no columns. pa.concat_tables and pa.Table.from_arrays would lose the rows."""
    nothing = pa.Array.from_buffers(pa.struct([]), rows, [None])
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(nothing)], schema=schema)


def validity_of(present: pa.Array) -> pa.Buffer | None:
    """Return the bitmap of a Boolean column, or None if all values are true. Raises F3Error if the column has nulls."""
    if present.null_count:
        raise F3Error(f"a column of presence bits must not have nulls (got {present.null_count})")
    if present.true_count == len(present):
        return None
    bits = present.buffers()[1]
    if present.offset == 0:
        return bits
    # Concatenating copies the bits, so that the first one is at the start of the buffer.
    return pa.concat_arrays([present, pa.array([], pa.bool_())]).buffers()[1]


def structs(arrow_type: pa.DataType, present: pa.Array, children: list[pa.Array]) -> pa.Array:
    """Build structs from their presence (Boolean) and their fields. Raises F3Error if the lengths differ."""
    rows = len(present)
    for child in children:
        if len(child) != rows:
            raise F3Error(f"each field of {rows} structs must have {rows} values (got {len(child)})")
    return pa.Array.from_buffers(arrow_type, rows, [validity_of(present)], children=children)


def item_counts(parts: list[np.ndarray]) -> list[int]:
    """Return the number of items in each unit, from the offsets of the unit. Raises F3Error if offsets descend."""
    for part in parts:
        if len(part) and np.any(part[1:] < part[:-1]):
            raise F3Error("the offset of a list is less than the offset before it")
    return [int(part[-1]) - int(part[0]) if len(part) else 0 for part in parts]


def lists(arrow_type: pa.DataType, present: pa.Array, parts: list[np.ndarray], items: pa.Array) -> pa.Array:
    """Build lists from their presence (Boolean), the offsets of each unit, and all items.

    Raises F3Error if the counts contradict each other, and TooLongError if the items need 64-bit offsets.
    """
    counts = item_counts(parts)
    total = sum(counts)
    rows = sum(max(len(part) - 1, 0) for part in parts)
    if rows != len(present):
        raise F3Error(f"there are presence bits for {len(present)} lists, but offsets for {rows}")
    if total != len(items):
        raise F3Error(f"the offsets of lists refer to {total} items, but there are {len(items)}")
    width = np.int64 if pa.types.is_large_list(arrow_type) else np.int32
    if width is np.int32 and total > _MOST_ITEMS:
        raise TooLongError(f"{total} items are too many for one array of {arrow_type}")
    offsets = np.empty(rows + 1, width)
    offsets[0] = 0
    place = base = 0
    for part, count in zip(parts, counts, strict=True):
        if len(part):
            offsets[place + 1 : place + len(part)] = part[1:] - part[0] + width(base)
            place += len(part) - 1
            base += count
    return pa.Array.from_buffers(arrow_type, rows, [validity_of(present), pa.py_buffer(offsets)], children=[items])
