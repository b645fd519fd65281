"""Schemas inferred from documents. A schema is a tree of objects, arrays and typed leaves that only grows. A leaf has a
column.

A position with values of several types is a union: it has one branch for each type. A union adds no level (paper, 3.2).
Nodes and leaves are numbered in order of first occurrence. A newer schema of a store therefore begins with the nodes of
the older schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from libraries.document_queries.paths import ITEMS, Path
from libraries.document_queries.values import MAX_DEPTH
from libraries.document_store.errors import CorruptError
from libraries.document_store.values import ValueKind

MOST_LEAVES = 4_000
"""Default limit of leaves. Without a limit, documents that use data as field names would create any number of columns.

All paths beyond the limit share the leaf REST. If many new paths arrive together, the rarest of them go to REST
(`shredding.frequent`).
"""
ROOT = 0
"""The node of the document itself."""
_NESTED = (ValueKind.ARRAY, ValueKind.OBJECT)
_HAVE_VALUES = (
    ValueKind.BOOLEAN,
    ValueKind.INTEGER,
    ValueKind.DOUBLE,
    ValueKind.TEXT,
    ValueKind.BINARY,
    ValueKind.REST,
)


@dataclass(frozen=True, slots=True)
class Node:
    """One type of value at one position. The position is the field `name` of the object `parent`, or an item of the
    array `parent`."""

    parent: int
    """Index in Schema.nodes; -1 for the document itself."""
    kind: ValueKind
    name: str | None = None
    """None for items of arrays, for markers (see `values.ValueKind`) and for the leaf REST."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A node that has a column. As in the paper (3.1), the document has level 0, and each step of a path adds 1."""

    number: int
    """The number of the leaf, which is the same in all later schemas of the store. 0 is the key."""
    path: Path
    kind: ValueKind
    max_level: int
    """The level of a token that has a value. For a marker, the level of the marker's parent."""
    array_levels: tuple[int, ...]
    """Levels of the enclosing arrays, outermost first."""

    @property
    def null_flag(self) -> int:
        """The bit that is set in a token's level if there is an explicit null below that level."""
        return 1 << self.max_level.bit_length()

    @property
    def level_bits(self) -> int:
        """Number of bits of a level, including the null flag."""
        return self.max_level.bit_length() + 1

    @property
    def has_values(self) -> bool:
        """Whether the leaf's column holds values in addition to levels."""
        return self.kind in _HAVE_VALUES


class Stored(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A schema as MessagePack. Nodes are stored as (parent, kind, name), without the first node."""

    key: str
    limit: int
    nodes: list[tuple[int, int, str | None]]


@dataclass(frozen=True)
class Schema:
    """An immutable schema. `Growing` makes larger schemas."""

    key: str
    """Name of the key field."""
    nodes: tuple[Node, ...]
    limit: int = MOST_LEAVES

    @staticmethod
    def new(key: str, kind: ValueKind, limit: int = MOST_LEAVES) -> Schema:
        """Return the schema of a store without documents, with keys of this kind (INTEGER or TEXT)."""
        if kind not in (ValueKind.INTEGER, ValueKind.TEXT):
            raise ValueError(f"the key {key!r} must be of the kind integer or text, not {kind.name.lower()}")
        return Schema(key, (Node(-1, ValueKind.OBJECT), Node(ROOT, kind, key)), limit)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The depth of each node, 0 for the document. A marker, the node of an object or array that was always empty,
        has the level of its parent."""
        levels = [0]
        for node in self.nodes[1:]:
            levels.append(levels[node.parent] + (node.kind is not ValueKind.MARKER))
        return tuple(levels)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Path of each node. A marker has the path of its parent, REST has the path of the document."""
        paths = [Path()]
        for node in self.nodes[1:]:
            above = paths[node.parent]
            if node.kind in (ValueKind.MARKER, ValueKind.REST):
                paths.append(above)
            else:
                paths.append(above / (ITEMS if node.name is None else node.name))
        return tuple(paths)

    @cached_property
    def leaf_nodes(self) -> tuple[int, ...]:
        """The node of each leaf."""
        return tuple(index for index, node in enumerate(self.nodes) if node.kind not in _NESTED)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves by number."""
        arrays: list[tuple[int, ...]] = []
        for index, node in enumerate(self.nodes):
            above = arrays[node.parent] if index else ()
            arrays.append((*above, self.levels[index]) if node.kind is ValueKind.ARRAY else above)
        return tuple(
            Leaf(number, self.paths[index], self.nodes[index].kind, self.levels[index], arrays[index])
            for number, index in enumerate(self.leaf_nodes)
        )

    @cached_property
    def rest(self) -> Leaf | None:
        """The leaf of all paths beyond the limit; None if no path is beyond the limit."""
        return next((leaf for leaf in self.leaves if leaf.kind is ValueKind.REST), None)

    @cached_property
    def slots(self) -> tuple[dict[str | None, list[int]], ...]:
        """For each node, a dict from the name of each field below it (None for the items of an array) to the numbers of
        the field's nodes. A field has one node for each type of its values. Nodes of the kinds MARKER (an object or
        array that was always empty) and REST (all paths beyond the limit) have no such nodes."""
        slots: tuple[dict[str | None, list[int]], ...] = tuple({} for _ in self.nodes)
        for index, node in enumerate(self.nodes):
            if index and node.kind not in (ValueKind.MARKER, ValueKind.REST):
                slots[node.parent].setdefault(node.name, []).append(index)
        return slots

    def leaves_under(self, path: Path) -> tuple[Leaf, ...]:
        """Return the leaves at and below a path, of all types. A path that is not in the schema has no leaves.

        If the schema has the leaf REST, also return REST and all leaves of the path's first field. These leaves locate
        the values of REST.
        """
        if self.rest is not None:
            return tuple(
                leaf for leaf in self.leaves if leaf.path[:1] == path[:1] or leaf.kind is ValueKind.REST or not path
            )
        return tuple(leaf for leaf in self.leaves if leaf.path[: len(path)] == path)

    def to_bytes(self) -> bytes:
        """Serialize for `from_bytes`."""
        nodes = [(node.parent, int(node.kind), node.name) for node in self.nodes[1:]]
        return msgspec.msgpack.encode(Stored(self.key, self.limit, nodes))

    @staticmethod
    def from_bytes(data: bytes | memoryview) -> Schema:
        """Deserialize bytes that may be hostile. Raises CorruptError for anything that `to_bytes` never writes."""
        try:
            stored = msgspec.msgpack.decode(data, type=Stored)
            nodes = [Node(parent, ValueKind(kind), name) for parent, kind, name in stored.nodes]
        except (msgspec.DecodeError, ValueError) as error:
            raise CorruptError(f"a schema cannot be decoded: {error}") from error
        schema = Schema(stored.key, (Node(-1, ValueKind.OBJECT), *nodes), stored.limit)
        _checked(schema)
        return schema


def _checked(schema: Schema) -> None:
    if len(schema.nodes) < 2 or schema.nodes[1].name != schema.key:
        raise CorruptError(f"a schema does not begin with its key {schema.key!r}")
    if schema.nodes[1].kind not in (ValueKind.INTEGER, ValueKind.TEXT) or schema.nodes[1].parent != ROOT:
        raise CorruptError(f"a schema's key {schema.key!r} is not an integer or text at the top level")
    if not 1 <= schema.limit <= 1 << 20:
        raise CorruptError(f"a schema has a limit of {schema.limit} leaves, 1 to {1 << 20} are allowed")
    seen: set[tuple[int, ValueKind, str | None]] = set()
    levels = [0]
    for index, node in enumerate(schema.nodes[1:], start=1):
        if not 0 <= node.parent < index or schema.nodes[node.parent].kind not in _NESTED:
            raise CorruptError(
                f"the parent of a schema's node {index} must be an array or object with a smaller number "
                f"(got node {node.parent})"
            )
        unnamed = node.kind in (ValueKind.MARKER, ValueKind.REST) or schema.nodes[node.parent].kind is ValueKind.ARRAY
        if unnamed != (node.name is None) or (node.kind is ValueKind.REST and node.parent != ROOT):
            kind, above = node.kind.name.lower(), schema.nodes[node.parent].kind.name.lower()
            named = "without a name" if node.name is None else f"named {node.name!r}"
            raise CorruptError(
                f"a schema's node {index} ({kind}, {named}) is not allowed below node {node.parent} ({above})"
            )
        if (node.parent, node.kind, node.name) in seen:
            raise CorruptError(f"a schema's node {index} occurs twice")
        if index > 1 and node.parent == ROOT and node.name == schema.key:
            raise CorruptError(f"a schema's key {schema.key!r} has two types")
        seen.add((node.parent, node.kind, node.name))
        levels.append(levels[node.parent] + (node.kind is not ValueKind.MARKER))
        if levels[-1] > MAX_DEPTH:
            raise CorruptError(f"a schema's node {index} is {levels[-1]} steps deep, at most {MAX_DEPTH} are allowed")
    leaves = sum(node.kind not in (*_NESTED, ValueKind.REST) for node in schema.nodes)
    if leaves > schema.limit:
        raise CorruptError(f"a schema has {leaves} leaves, its limit is {schema.limit}")
    with_children = {node.parent for node in schema.nodes}
    bare = [i for i, node in enumerate(schema.nodes) if node.kind in _NESTED and i not in with_children]
    if bare:
        raise CorruptError(f"a schema's node {bare[0]} is an array or object, but has no nodes below it")


def merged(first: Schema, second: Schema) -> Schema:
    """Return the larger of two schemas of one store. Raises CorruptError unless the larger schema extends the smaller
    one."""
    longer, shorter = (first, second) if len(first.nodes) >= len(second.nodes) else (second, first)
    alike = longer.key == shorter.key and longer.limit == shorter.limit
    if not alike or longer.nodes[: len(shorter.nodes)] != shorter.nodes:
        raise CorruptError("two schemas are of different stores: neither extends the other")
    return longer


class Growing:
    """A growing schema. Code that walks documents adds nodes to it. This class defines the rules of growth."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._nodes = list(schema.nodes)
        self._branches: dict[tuple[int, str | None], dict[ValueKind, int]] = {}
        for index, node in enumerate(self._nodes):
            self._branches.setdefault((node.parent, node.name), {})[node.kind] = index
        self._parents = {node.parent for node in self._nodes}
        self._leaves = len(schema.leaves)

    def branch(self, parent: int, name: str | None, kind: ValueKind) -> int | None:
        """Return the node for a value of this kind at this position. Create the node if necessary.

        Returns None at the limit of leaves; the value then belongs to REST. Returns ROOT for a null if the position
        already has a branch, because the branch's tokens then represent the null.
        """
        branches = self._branches.get((parent, name), {})
        if kind in branches:
            return branches[kind]
        if kind is ValueKind.NULL and any(
            other is not ValueKind.MARKER and other is not ValueKind.REST for other in branches
        ):
            return ROOT
        if self._leaves >= self._schema.limit:
            if self._schema.rest is None and (ROOT, None) not in self._branches:
                self._add(ROOT, None, ValueKind.REST)
            return None
        return self._add(parent, name, kind)

    def mark_empty(self, node: int) -> None:
        """Record that the object or array of this node occurred without fields or items."""
        if node not in self._parents:
            self._add(node, None, ValueKind.MARKER)

    def _add(self, parent: int, name: str | None, kind: ValueKind) -> int:
        self._nodes.append(Node(parent, kind, name))
        self._parents.add(parent)
        self._branches.setdefault((parent, name), {})[kind] = len(self._nodes) - 1
        self._leaves += kind not in _NESTED
        return len(self._nodes) - 1

    def schema(self) -> Schema:
        """Return the current schema."""
        if len(self._nodes) == len(self._schema.nodes):
            return self._schema
        return Schema(self._schema.key, tuple(self._nodes), self._schema.limit)


def extended(schema: Schema, nodes: Sequence[Node]) -> Schema:
    """Return the schema with further nodes, which must follow the rules of `Growing`."""
    return Schema(schema.key, (*schema.nodes, *nodes), schema.limit) if nodes else schema
