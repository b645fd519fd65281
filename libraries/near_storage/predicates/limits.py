"""How large a filter may be, so that nothing after this check recurses deeply or holds much."""

from __future__ import annotations

from libraries.near_storage.errors import RequestError
from libraries.near_storage.predicates.tree import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Known,
    Literal,
    Not,
    Or,
    Predicate,
    Prefix,
)

MOST_DEPTH = 64
"""Levels of a tree, a leaf is one."""

MOST_NODES = 4_096
"""And, Or, Not and leaves together."""

MOST_LITERALS = 10_000
"""Literals of a whole tree, those of IN lists above all."""

MOST_LITERAL_BYTES = 65_536
"""Of one text or binary literal, in UTF-8."""

MOST_NAME_BYTES = 1_024
"""Of a name of a column or table, in UTF-8."""


def check(predicate: Predicate) -> None:
    """Raise RequestError unless the tree keeps all limits and consists of known nodes. Not recursive."""
    nodes = literals = 0
    waiting: list[tuple[Predicate, int]] = [(predicate, 1)]
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > MOST_DEPTH:
            raise RequestError(f"the filter is more than {MOST_DEPTH} levels deep: write it flatter")
        if nodes > MOST_NODES:
            raise RequestError(f"the filter has more than {MOST_NODES} conditions: send fewer, or an IN list")
        match node:
            case And(parts) | Or(parts):
                if len(parts) > MOST_NODES:
                    raise RequestError(f"the filter has more than {MOST_NODES} conditions: send fewer, or an IN list")
                waiting.extend((part, depth + 1) for part in parts)
            case Not(part):
                waiting.append((part, depth + 1))
            case _:
                literals += _leaf(node)
        if literals > MOST_LITERALS:
            raise RequestError(
                f"the filter has more than {MOST_LITERALS} literals: send fewer, or filter at the client"
            )


def check_name(name: object, what: str) -> str:
    """The name itself if it is text of a bearable length; raises RequestError that calls it `what`."""
    if not isinstance(name, str) or not 0 < _bytes(name) <= MOST_NAME_BYTES:
        raise RequestError(f"the name of {what} must be text of 1 to {MOST_NAME_BYTES} bytes")
    return name


def _leaf(leaf: Predicate) -> int:
    """How many literals a leaf has, after checking it."""
    match leaf:
        case Constant():
            return 0
        case Comparison() | In() | IsNull() | Prefix() | Known():
            _column_name(leaf.column)
        case _:
            raise RequestError(f"{type(leaf).__name__} is no part of a filter")
    match leaf:
        case Comparison():
            _literal(leaf.literal)
            return 1
        case In():
            if len(leaf.literals) <= MOST_LITERALS:
                for literal in leaf.literals:
                    _literal(literal)
            return len(leaf.literals)
        case Prefix() if _bytes(leaf.text) > MOST_LITERAL_BYTES:
            raise RequestError(f"a prefix has more than {MOST_LITERAL_BYTES} bytes")
    return 0


def _column_name(name: object) -> None:
    if not isinstance(name, str) or _bytes(name) > MOST_NAME_BYTES:
        raise RequestError(f"the name of a column must be text of at most {MOST_NAME_BYTES} bytes")


def _literal(literal: Literal) -> None:
    value = literal.value
    if isinstance(value, bytes | str) and _bytes(value) > MOST_LITERAL_BYTES:
        raise RequestError(f"a literal has more than {MOST_LITERAL_BYTES} bytes: filter such values at the client")


def _bytes(value: str | bytes) -> int:
    """Length in UTF-8; of text that is longer than any limit an estimate, without encoding it."""
    if isinstance(value, bytes) or len(value) > MOST_LITERAL_BYTES:
        return len(value)
    return len(value.encode("utf-8", "surrogatepass"))
