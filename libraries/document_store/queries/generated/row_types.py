"""Create msgspec structs for a plan. The structs decode only the parts of a row that the plan reads, and skip other
parts.

The structs' attributes have numbered names, so no field name becomes code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from libraries.document_queries.paths import Items
from libraries.document_queries.plan import Plan, absolute, arrays_of
from libraries.document_queries.semantics import MISSING
from libraries.document_store.queries.branches import Use, uses_of

Decode = Callable[[bytes], Any]


@dataclass
class Shape:
    """What a plan reads at one position: the whole value, or parts of it."""

    whole: bool = False
    fields: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    struct: type[msgspec.Struct] | None = None
    """The struct type to which an object at this position is decoded, unless the whole object is needed."""

    def attribute(self, name: str) -> str:
        """Return the name of the struct's attribute for a field."""
        return f"f{list(self.fields).index(name)}"


def shape_of(plan: Plan) -> Shape:
    """Return what a plan reads of a document."""
    root = Shape()
    for read, use in uses_of(plan).items():
        _at(root, absolute(plan, read.of, read.path)).whole |= bool(use & Use.WHOLE)
    for array in arrays_of(plan):
        _at(root, absolute(plan, array.name, ()))
    _make_structs(root)
    return root


def _at(shape: Shape, path: tuple[Any, ...]) -> Shape:
    for step in path:
        if isinstance(step, Items):
            shape.items = shape.items or Shape()
            shape = shape.items
        else:
            shape = shape.fields.setdefault(step, Shape())
    return shape


def _make_structs(shape: Shape) -> None:
    if shape.whole:
        # Values at positions below are read from the whole value.
        for below in (*shape.fields.values(), *([shape.items] if shape.items else [])):
            below.whole = True
    for below in (*shape.fields.values(), *([shape.items] if shape.items else [])):
        _make_structs(below)
    parts = [(shape.attribute(name), _type_of(below), MISSING) for name, below in shape.fields.items()]
    # If msgspec rejects one name, rename no field, because some names could equal attributes of other fields.
    names = {shape.attribute(name): name for name in shape.fields} if all(map(_is_plain, shape.fields)) else None
    shape.struct = msgspec.defstruct("Read", parts, rename=names, gc=False)


def _type_of(shape: Shape) -> Any:
    if shape.whole:
        return Any
    items = _type_of(shape.items) if shape.items else msgspec.Raw
    return None | bool | int | float | str | list[items] | shape.struct  # type: ignore[valid-type]


def decoder_of(shape: Shape) -> Decode:
    """Return a function that decodes rows to structs of this shape."""
    whole = msgspec.msgpack.Decoder()
    if shape.whole or not _has_plain_names(shape):
        return lambda row: converted(shape, whole.decode(row))
    assert shape.struct is not None
    typed = msgspec.msgpack.Decoder(shape.struct).decode

    def decode(row: bytes) -> Any:
        try:
            return typed(row)
        except msgspec.ValidationError:
            # msgspec allows no union of bytes and text. Such rows are rare, so decode them in whole.
            return converted(shape, whole.decode(row))

    return decode


def converted(shape: Shape, value: Any) -> Any:
    """Convert a value that was decoded without `shape` to the result of decoding with `shape`."""
    if shape.whole:
        return value
    if type(value) is dict:
        assert shape.struct is not None
        found = {name: below for name, below in shape.fields.items() if name in value}
        return shape.struct(**{shape.attribute(name): converted(below, value[name]) for name, below in found.items()})
    if type(value) is list and shape.items is not None:
        return [converted(shape.items, item) for item in value]
    return value


def _is_plain(name: str) -> bool:
    """Return whether msgspec allows this name for a field."""
    return not any(character in '"\\' or character < " " for character in name)


def _has_plain_names(shape: Shape) -> bool:
    below = [*shape.fields.values(), *([shape.items] if shape.items else [])]
    return all(map(_is_plain, shape.fields)) and all(map(_has_plain_names, below))
