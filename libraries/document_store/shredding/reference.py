"""Shred documents with extended Dremel in plain Python (paper, 3.1 and 3.2). Used if the C kernels are not built.

This module is also the specification of the shredder, the code that splits documents into columns. First, all documents
extend the schema. Then the documents are written as tokens of all leaves. The input is decoded documents that were
checked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from libraries.document_store.schema import ROOT, Growing, Schema
from libraries.document_store.shredding.columns import Column, values_of
from libraries.document_store.values import ValueKind, kind_of

_encode = msgspec.msgpack.Encoder().encode


def infer(documents: Iterable[dict[str, Any]], schema: Schema) -> Schema:
    """Return the schema, extended by the paths and types of these documents."""
    growing = Growing(schema)
    for document in documents:
        see(document, growing)
    return growing.schema()


def see(document: dict[str, Any], growing: Growing) -> None:
    """Extend the schema in `growing` by the paths and types of one document."""
    for name, value in document.items():
        _see(growing, ROOT, name, value)


def _see(growing: Growing, parent: int, name: str | None, value: Any) -> None:
    kind = kind_of(value)
    node = growing.branch(parent, name, kind)
    if node is None or kind not in (ValueKind.OBJECT, ValueKind.ARRAY):
        return
    if not value:
        growing.mark_empty(node)
    for below, item in value.items() if kind is ValueKind.OBJECT else ((None, item) for item in value):
        _see(growing, node, below, item)


class _Stream:
    """The tokens of one leaf while they are written."""

    def __init__(self, null_flag: int) -> None:
        self.levels: list[int] = []
        self.values: list[Any] = []
        self.null_flag = null_flag
        self._delimited = False

    def level(self, level: int, null: bool = False) -> None:
        self.levels.append(level | self.null_flag if null else level)
        self._delimited = False

    def delimiter(self, level: int) -> None:
        # Of consecutive delimiters keep the outermost, which implies that the inner arrays ended too (3.1).
        if self._delimited:
            self.levels.pop()
        self.levels.append(level)
        self._delimited = True


class Shredder:
    """Writes documents into the columns of a schema that has all paths of the documents."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._streams = [_Stream(leaf.null_flag) for leaf in schema.leaves]
        self._number = {node: leaf for leaf, node in enumerate(schema.leaf_nodes)}
        self._below: list[list[_Stream]] = [[] for _ in schema.nodes]
        self._markers: dict[int, _Stream] = {}
        for number, index in enumerate(schema.leaf_nodes):
            above = index
            while above >= ROOT:
                self._below[above].append(self._streams[number])
                above = schema.nodes[above].parent
            if schema.nodes[index].kind is ValueKind.MARKER:
                self._markers[schema.nodes[index].parent] = self._streams[number]
        self._rest: list[tuple[list[str | int], Any]] = []
        self._way: list[str | int] = []

    def add(self, document: dict[str, Any]) -> None:
        """Add one record."""
        self._rest.clear()
        self._object(ROOT, document)
        if self._schema.rest is not None:
            stream = self._streams[self._schema.rest.number]
            stream.level(1 if self._rest else 0)
            if self._rest:
                stream.values.append(_encode(self._rest))

    def columns(self) -> list[Column]:
        """Return all columns, in the order of their leaves."""
        return [
            Column(leaf, np.array(stream.levels, np.uint8), values_of(leaf.kind, stream.values))
            for leaf, stream in zip(self._schema.leaves, self._streams, strict=True)
        ]

    def _absent(self, node: int, level: int, null: bool = False) -> None:
        for stream in self._below[node]:
            stream.level(level, null)

    def _object(self, node: int, fields: dict[str, Any]) -> None:
        level, slots = self._schema.levels[node], self._schema.slots[node]
        if node in self._markers:
            self._markers[node].level(level)
        for name, value in fields.items():
            self._way.append(name)
            self._position(slots.get(name, ()), level, value)
            self._way.pop()
        for unseen in slots.keys() - fields.keys():
            for branch in slots[unseen]:
                self._absent(branch, level)

    def _array(self, node: int, items: list[Any]) -> None:
        level = self._schema.levels[node]
        branches = self._schema.slots[node].get(None, ())
        marker = [self._markers[node]] if node in self._markers else []
        if not items:
            self._absent(node, level)
        for index, item in enumerate(items):
            for stream in marker:
                stream.level(level)
            self._way.append(index)
            self._position(branches, level, item)
            self._way.pop()
        for stream in self._below[node]:
            stream.delimiter(level - 1)

    def _position(self, branches: Sequence[int], level: int, value: Any) -> None:
        """Write a value at a position of an object or array of this level. A null goes to all branches of a union. Any
        other value goes to the branch of its type, and the other branches are written as if the value were missing. A
        value without a branch goes to REST."""
        kind = kind_of(value)
        taken = False
        for branch in branches:
            if kind is ValueKind.NULL:
                self._absent(branch, level, null=True)
                taken = True
            elif self._schema.nodes[branch].kind is kind:
                self._value(branch, kind, value)
                taken = True
            else:
                self._absent(branch, level)
        if not taken:
            self._rest.append((list(self._way), value))

    def _value(self, node: int, kind: ValueKind, value: Any) -> None:
        if kind is ValueKind.OBJECT:
            self._object(node, value)
        elif kind is ValueKind.ARRAY:
            self._array(node, value)
        else:
            stream = self._streams[self._number[node]]
            stream.level(self._schema.levels[node])
            stream.values.append(value.encode() if kind is ValueKind.TEXT else value)
