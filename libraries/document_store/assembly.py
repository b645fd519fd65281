"""Reassemble documents from columns (paper, 3.4): whole documents, or only the parts under some paths.

Columns may come from hostile bytes. The shredder is the code that splits documents into columns. Tokens (levels) that
the shredder never writes raise CorruptError.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from libraries.document_queries.paths import ITEMS, Path, Step
from libraries.document_store import kernels, messagepack
from libraries.document_store.errors import CorruptError
from libraries.document_store.schema import ROOT, Leaf, Schema
from libraries.document_store.shredding.columns import Column
from libraries.document_store.values import ValueKind

_MISSING: Any = object()
_Overflow = list[tuple[list[str | int], Any]]
_encode = msgspec.msgpack.Encoder().encode
_decode_rest = msgspec.msgpack.Decoder(_Overflow).decode


def assemble(
    schema: Schema,
    columns: Mapping[int, Column],
    count: int,
    paths: Sequence[Path] | None = None,
    *,
    use_native: bool | None = None,
) -> list[dict[str, Any]]:
    """Return the documents of `count` records. `columns` maps the numbers of all schema leaves to columns.

    With `paths`, return only the parts of documents under these paths. `columns` then needs only the leaves that
    `schema.leaves_under` returns for these paths. An array item without a value under the paths becomes an empty
    object. If no item of an array has such a value, the array may also come back empty. The key's column must not
    contain deleted records. Raises CorruptError if the columns are inconsistent, KeyError if a column is missing.
    """
    if kernels.NATIVE if use_native is None else use_native:
        return [messagepack.decode(row) for row in assemble_rows(schema, columns, count, paths, use_native=True)]
    records = _Assembler(schema, _wanted(schema, paths), columns, _fields(paths))
    documents = [records.record() for _ in range(count)]
    records.at_end()
    if paths is None or schema.rest is None:
        return documents
    return [_only(document, paths) for document in documents]


def assemble_rows(
    schema: Schema,
    columns: Mapping[int, Column],
    count: int,
    paths: Sequence[Path] | None = None,
    *,
    use_native: bool | None = None,
) -> list[bytes]:
    """Like `assemble`, but return rows of MessagePack."""
    if not (kernels.NATIVE if use_native is None else use_native):
        return [_encode(document) for document in assemble(schema, columns, count, paths, use_native=False)]
    wanted = _wanted(schema, paths)
    given: list[Column | None] = [None] * len(schema.leaves)
    for leaf in wanted:
        given[leaf.number] = columns[leaf.number]
    rows = kernels.assembled_rows(schema, given, count)
    if rows is None:
        raise CorruptError(
            f"{count} records cannot be assembled, because the columns of {len(wanted)} leaves are inconsistent"
        )
    if schema.rest is None:
        return rows
    _put_back_into(rows, columns[schema.rest.number], _fields(paths))
    return rows if paths is None else [_encode(_only(messagepack.decode(row), paths)) for row in rows]


def _wanted(schema: Schema, paths: Sequence[Path] | None) -> Sequence[Leaf]:
    if paths is None:
        return schema.leaves
    wanted = {leaf.number: leaf for path in paths for leaf in schema.leaves_under(path)}
    return [wanted[number] for number in sorted(wanted)]


def _only(value: Any, paths: Sequence[Sequence[Step]]) -> Any:
    """Return the parts of a value under some paths; _MISSING if the value has no such parts."""
    if value is None or not all(paths):
        return value
    if isinstance(value, dict):
        below = {name: [path[1:] for path in paths if path[0] == name] for name in value}
        parts = {name: _only(item, below[name]) for name, item in value.items() if below[name]}
        return {name: part for name, part in parts.items() if part is not _MISSING}
    inner = [path[1:] for path in paths if path[0] is ITEMS]
    if not isinstance(value, list) or not inner:
        return _MISSING
    items = [_only(item, inner) for item in value]
    return [{} if item is _MISSING else item for item in items]


def _fields(paths: Sequence[Path] | None) -> Collection[Step] | None:
    """Return the first step of each path. Return None if the whole document is wanted: without `paths`, or with an
    empty path."""
    return None if paths is None or not all(paths) else {path[0] for path in paths}


def rest_fields(rest: Column) -> set[str | int]:
    """Return the top-level fields under which a REST column (all paths beyond the schema's limit) holds values. Raises
    CorruptError."""
    try:
        return {way[0] for entry in rest.values.tolist() for way, _ in _decode_rest(entry)}
    except (msgspec.DecodeError, LookupError) as error:
        raise CorruptError(f"the column for paths beyond the schema's limit is malformed: {error}") from error


def _put_back_into(rows: list[bytes], rest: Column, fields: Collection[Step] | None) -> None:
    places = np.flatnonzero(rest.levels).tolist()
    if len(rest.levels) != len(rows) or len(rest.values) != len(places):
        raise CorruptError(
            f"the column for paths beyond the schema's limit has {len(rest.levels)} records and {len(rest.values)} "
            f"values; expected {len(rows)} records and {len(places)} values"
        )
    for place, value in zip(places, rest.values.tolist(), strict=True):
        document = messagepack.decode(rows[place])
        put_back(document, value, fields)
        rows[place] = _encode(document)


class _Reader:
    """The tokens of one leaf, and the position of the next token to read."""

    def __init__(self, leaf: Leaf, column: Column) -> None:
        self.leaf = leaf
        self.tokens: list[int] = column.levels.tolist()
        self.place = 0
        self._mask = leaf.null_flag - 1
        self._values = column.values.tolist()
        self._next_value = 0
        self._convert: Callable[[Any], Any] = {ValueKind.TEXT: bytes.decode}.get(leaf.kind, lambda value: value)

    def level(self) -> int:
        """The level of the next token, without the null flag."""
        if self.place >= len(self.tokens):
            raise CorruptError(f"column {self.leaf.number} ({self.leaf.path}) has too few tokens")
        return self.tokens[self.place] & self._mask

    def is_null(self) -> bool:
        return self.tokens[self.place] > self._mask

    def skip(self) -> None:
        self.place += 1

    def value(self) -> Any:
        self.place += 1
        if self._next_value >= len(self._values):
            raise CorruptError(f"column {self.leaf.number} ({self.leaf.path}) has too few values")
        self._next_value += 1
        try:
            return self._convert(self._values[self._next_value - 1])
        except UnicodeDecodeError as error:
            raise CorruptError(f"column {self.leaf.number} ({self.leaf.path}) has a text that is not UTF-8") from error

    def at_end(self) -> None:
        if self.place != len(self.tokens) or self._next_value != len(self._values):
            raise CorruptError(
                f"column {self.leaf.number} ({self.leaf.path}) has tokens or values after its last record"
            )


class _Assembler:
    """Assembles one record after another from the readers of all leaves."""

    def __init__(
        self, schema: Schema, leaves: Iterable[Leaf], columns: Mapping[int, Column], fields: Collection[Step] | None
    ) -> None:
        self._schema, self._fields = schema, fields
        self._rest: _Reader | None = None
        self._readers: list[_Reader] = []
        self._below: dict[int, list[_Reader]] = {}
        self._reader_of: dict[int, _Reader] = {}
        for leaf in leaves:
            reader = _Reader(leaf, columns[leaf.number])
            self._readers.append(reader)
            if leaf.kind is ValueKind.REST:
                self._rest = reader
                continue
            above = schema.leaf_nodes[leaf.number]
            self._reader_of[above] = reader
            while above >= ROOT:
                self._below.setdefault(above, []).append(reader)
                above = schema.nodes[above].parent
        self._slots = [
            [(name, kept) for name, branches in slots.items() if (kept := [b for b in branches if b in self._below])]
            for slots in schema.slots
        ]
        self._markers = {
            schema.nodes[node].parent: reader
            for node, reader in self._reader_of.items()
            if schema.nodes[node].kind is ValueKind.MARKER
        }

    def record(self) -> dict[str, Any]:
        document = self._object(ROOT)
        if self._rest is not None:
            if self._rest.level() == 0:
                self._rest.skip()
            else:
                put_back(document, self._rest.value(), self._fields)
        return document

    def at_end(self) -> None:
        for reader in self._readers:
            reader.at_end()

    def _object(self, node: int) -> dict[str, Any]:
        if node in self._markers:
            self._markers[node].skip()
        fields = {}
        for name, branches in self._slots[node]:
            value = self._position(branches)
            if value is not _MISSING:
                fields[str(name)] = value
        return fields

    def _position(self, branches: list[int]) -> Any:
        """Return the value at a position. At most one branch has a value, because each branch is one type of value. If
        no branch has one, return None for an explicit null, else _MISSING."""
        values = [self._branch(branch) for branch in branches]
        taken = [value for value in values if value is not _MISSING and value is not None]
        nulls = sum(value is None for value in values)
        if len(taken) > 1 or (nulls and nulls < len(values)):
            raise CorruptError(f"{self._schema.paths[branches[0]]} has contradictory values in one record")
        return taken[0] if taken else None if nulls else _MISSING

    def _branch(self, branch: int) -> Any:
        level, below = self._schema.levels[branch], self._below[branch]
        if below[0].level() >= level and self._schema.nodes[branch].kind is not ValueKind.NULL:
            return self._value(branch)
        is_null = below[0].is_null()
        for reader in below:
            if reader.level() != level - 1 or reader.is_null() is not is_null:
                raise CorruptError(
                    f"column {reader.leaf.number} ({reader.leaf.path}) contradicts its neighbouring columns"
                )
            reader.skip()
        return None if is_null else _MISSING

    def _value(self, node: int) -> Any:
        kind = self._schema.nodes[node].kind
        if kind is ValueKind.OBJECT:
            return self._object(node)
        if kind is ValueKind.ARRAY:
            return self._array(node)
        return self._reader_of[node].value()

    def _array(self, node: int) -> list[Any]:
        level, readers = self._schema.levels[node], self._below[node]
        branches = [branch for _, branches in self._slots[node] for branch in branches]
        first, marker = readers[0], self._markers.get(node)
        items: list[Any] = []
        while True:
            if marker is not None:
                marker.skip()
            items.append(self._position(branches))
            if first.level() < level:
                break
        # Of consecutive delimiters only the outermost is stored. Leave it unread for the array that it ends (3.1).
        for reader in readers:
            if reader.level() >= level or reader.is_null():
                raise CorruptError(
                    f"column {reader.leaf.number} ({reader.leaf.path}) has no delimiter where its array ends"
                )
            if reader.level() == level - 1:
                reader.skip()
        if items == [_MISSING]:
            return []
        return [{} if item is _MISSING else item for item in items]


def put_back(document: dict[str, Any], rest: bytes, fields: Collection[Step] | None = None) -> None:
    """Insert values into a document. `rest` is the document's entry in the REST column: paths and the values at these
    paths. With `fields`, insert only values under these fields.

    Raises CorruptError if a path does not exist.
    """
    try:
        for way, value in _decode_rest(rest):
            if fields is not None and way[0] not in fields:
                continue
            target: Any = document
            for step in way[:-1]:
                target = target[step]
            last = way[-1]
            if isinstance(target, list) is isinstance(last, str):
                raise TypeError(f"{last!r} is not a step into a {type(target).__name__}")
            if isinstance(target, list) and last == len(target):
                target.append(value)
            else:
                target[last] = value
    except (msgspec.DecodeError, LookupError, TypeError) as error:
        raise CorruptError(
            f"the column for paths beyond the schema's limit does not fit a document: {error}"
        ) from error
