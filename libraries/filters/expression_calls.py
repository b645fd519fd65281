"""Decompose a pyarrow Expression into fields, typed literals and calls with their options.

pyarrow has no API to inspect an Expression. Substrait fails on nanosecond timestamps and loses the null handling of
`isin`, and the text form loses the types of literals and most of a long list. This module reads the record batch to
which pyarrow serializes an Expression. The metadata of this batch hold the calls, and the columns hold the literals and
options. The batch is created and read within one process. It is never stored, sent or received, and no Expression is
made from it. For an unknown layout the result is None, and the filter runs on the client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

_ENTRY = re.compile(r"(call|end|literal|options|field_ref|nested_field_ref): '(.*)'")


@dataclass(frozen=True)
class Field:
    """A top-level column by name."""

    name: str


@dataclass(frozen=True)
class Value:
    """A literal."""

    scalar: pa.Scalar


@dataclass
class Call:
    """A call of an Arrow function by name. `options` is None, or a struct scalar with the fields of the function's
    options."""

    function: str
    arguments: list[Node] = field(default_factory=list)
    options: pa.StructScalar | None = None


Node: TypeAlias = Field | Value | Call

NESTED = "nested_field_ref"
"""The function name of a call that refers to a field inside a column. The arguments are the names on the path."""


def read(expression: pc.Expression) -> Node | None:
    """Return the parts of an expression; None if they cannot be determined with certainty.

    If pyarrow's public functions can rebuild an expression from the parts, the rebuilt expression is compared with the
    original. If they differ, the result is None.
    """
    try:
        batch = _as_batch(expression)
        found, rebuilt = _tree(_entries(batch.select([]).schema), batch)
    except (pa.ArrowException, LookupError, ValueError, TypeError, AttributeError):
        return None
    return found if rebuilt is None or rebuilt.equals(expression) else None


def names_in(expression: pc.Expression) -> frozenset[str] | None:
    """Return the top-level columns that an expression uses; None if they cannot be determined."""
    root = read(expression)
    if root is None:
        return None
    names: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Field):
            names.add(node.name)
        elif isinstance(node, Call):
            waiting += node.arguments[:1] if node.function == NESTED else node.arguments
    return frozenset(names)


def _as_batch(expression: pc.Expression) -> pa.RecordBatch:
    _, (buffer, *_) = expression.__reduce__()
    with pa.ipc.open_file(buffer) as reader:
        return reader.get_batch(0)


def _entries(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the metadata as pairs in order. Keys can repeat, so a dict would lose entries."""
    text = schema.to_string(show_schema_metadata=True, truncate_metadata=False)
    _, _, shown = text.partition("-- schema metadata --\n")
    found = [_ENTRY.fullmatch(line) for line in shown.split("\n")]
    return [(each[1], each[2]) for each in found if each is not None] if all(found) else []


def _tree(entries: list[tuple[str, str]], batch: pa.RecordBatch) -> tuple[Node, pc.Expression | None]:
    """Return the node that the entries form, and the result of `_rebuilt`. Raises ValueError for an unknown layout.

    Not recursive, because chains of conditions can be long.
    """
    root = Call("")
    open_calls: list[Call] = [root]
    built: list[list[pc.Expression | None]] = [[]]
    names_left = 0
    for key, value in entries:
        if key == "options":
            open_calls[-1].options = batch.column(int(value))[0]
        elif key in ("call", NESTED):
            call = Call(value if key == "call" else NESTED)
            names_left = int(value) if key == NESTED else 0
            open_calls[-1].arguments.append(call)
            open_calls.append(call)
            built.append([])
        elif key != "end":
            leaf = Field(value) if key == "field_ref" else Value(batch.column(int(value))[0])
            open_calls[-1].arguments.append(leaf)
            built[-1].append(pc.field(leaf.name) if isinstance(leaf, Field) else pc.scalar(leaf.scalar))
            names_left -= 1
        if key == "end" or (open_calls[-1].function == NESTED and names_left == 0):
            call = open_calls.pop()
            if call.function != (value if key == "end" else NESTED):
                raise ValueError(f"expected the end of the call {call.function}, found the end of {value}")
            arguments = built.pop()
            built[-1].append(_rebuilt(call, arguments))
    if len(open_calls) != 1 or len(root.arguments) != 1:
        raise ValueError("the entries do not form exactly one expression")
    return root.arguments[0], built[0][0]


def _rebuilt(call: Call, arguments: list[pc.Expression | None]) -> pc.Expression | None:
    """Rebuild the call with pyarrow's public functions; None if a part of it is unknown."""
    if any(each is None for each in arguments):
        return None
    if call.function == NESTED:
        return pc.field(*(each.name for each in call.arguments if isinstance(each, Field)))
    function = getattr(pc, call.function, None)
    if call.options is None or function is None:
        return None if function is None else function(*arguments)
    make = _OPTIONS.get(call.function)
    options = None if make is None else make(call.options)
    return None if options is None else function(*arguments, options=options)


def _lookup_options(options: Any) -> pc.SetLookupOptions | None:
    behaviour = options["null_matching_behavior"].as_py()
    if behaviour > 1:
        return None
    return pc.SetLookupOptions(value_set=options["value_set"].values, skip_nulls=behaviour == 1)


def _match_options(options: Any) -> pc.MatchSubstringOptions:
    return pc.MatchSubstringOptions(options["pattern"].as_py(), ignore_case=options["ignore_case"].as_py())


def _null_options(options: Any) -> pc.NullOptions:
    return pc.NullOptions(nan_is_null=options["nan_is_null"].as_py())


_OPTIONS = {"is_in": _lookup_options, "starts_with": _match_options, "is_null": _null_options}
