"""Components in memory for the tests of layouts, and a dict as the model of their contents."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from libraries.document_store.layouts import ComponentOptions, StoredComponent, open_component, write_component
from libraries.document_store.schema import Schema
from libraries.document_store.values import ValueKind

Versions = Mapping[int | str, dict[str, Any] | None]
"""Key to document, None for a deleted one."""


@dataclass
class MemoryFile:
    """A file for one writer or many readers that records what was read."""

    data: bytearray = field(default_factory=bytearray)
    name: str = "00000001.component"
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def write(self, data: bytes | memoryview) -> None:
        self.data += data

    def read(self, length_bytes: int, offset_bytes: int) -> bytes:
        assert offset_bytes + length_bytes <= len(self.data)
        self.reads.append((offset_bytes, length_bytes))
        return bytes(self.data[offset_bytes : offset_bytes + length_bytes])


def new_schema(text_keys: bool = False, limit: int = 4000) -> Schema:
    return Schema.new("id", ValueKind.TEXT if text_keys else ValueKind.INTEGER, limit)


def write(
    layout: str, versions: Versions, schema: Schema | None = None, text_keys: bool = False, batch: int = 1000, **options
) -> tuple[MemoryFile, Schema]:
    """Write a component; return its file and the resulting schema."""
    keys = sorted(versions)
    array = np.array(keys, object if text_keys else np.int64)
    rows = [None if versions[key] is None else msgspec.msgpack.encode(versions[key]) for key in keys]
    batches = [(array[at : at + batch], rows[at : at + batch]) for at in range(0, len(keys), batch)]
    file = MemoryFile()
    info = write_component(file, layout, batches, schema or new_schema(text_keys), ComponentOptions(**options))
    assert info.size_bytes == file.size_bytes
    assert info.count == len(keys)
    return file, info.schema


def component_of(layout: str, versions: Versions, schema: Schema | None = None, **options) -> StoredComponent:
    return open_component(write(layout, versions, schema, **options)[0])


def read_back(component: StoredComponent) -> dict[int | str, dict[str, Any] | None]:
    found: dict[int | str, dict[str, Any] | None] = {}
    for leaf in component.leaves:
        keys, antimatter = leaf.keys()
        assert len(keys) == leaf.count
        assert (keys[0], keys[-1]) == (leaf.min_key, leaf.max_key)
        there = np.flatnonzero(~antimatter)
        documents = iter(map(msgspec.msgpack.decode, leaf.rows()))
        found |= {
            key: None if gone else next(documents) for key, gone in zip(keys.tolist(), antimatter.tolist(), strict=True)
        }
        assert next(documents, None) is None
        # A few records are read in another way than all of them.
        some = there[3 :: len(keys) // 2 + 1]
        documents = iter(map(msgspec.msgpack.decode, leaf.rows(some)))
        assert all(alike(found[key], next(documents)) for key in keys[some].tolist())
    return found


def alike(first: Any, second: Any) -> bool:
    """Return whether two values have one type and the same bits; the order of fields is ignored."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return struct.pack("<d", first) == struct.pack("<d", second)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(alike, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(alike(value, second[name]) for name, value in first.items())
    return bool(first == second)


def newest(components: Sequence[Versions]) -> dict[int | str, dict[str, Any] | None]:
    """Return the combined contents of the components, newest first."""
    found: dict[int | str, dict[str, Any] | None] = {}
    for versions in reversed(components):
        found |= versions
    return found
