"""Limits on the size of a filter, checked first so that no later step recurses deeply or uses much memory."""

from __future__ import annotations

from libraries.filters.errors import RequestError
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix

MOST_DEPTH = 64
"""Maximum number of levels of a tree. A leaf has one level."""

MOST_NODES = 4_096
"""Maximum number of nodes: And, Or, Not and leaves."""

MOST_LITERALS = 10_000
"""Maximum number of literals in a tree, including literals in IN lists."""

MOST_LITERAL_BYTES = 65_536
"""Maximum bytes of a text literal (in UTF-8) or binary literal."""

MOST_NAME_BYTES = 1_024
"""Maximum bytes of a column or table name in UTF-8."""


def check(predicate: Predicate) -> None:
    """Raise RequestError unless the tree is within all limits and has only known nodes. Not recursive."""
    nodes = literals = 0
    waiting: list[tuple[Predicate, int]] = [(predicate, 1)]
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > MOST_DEPTH:
            raise RequestError(f"the filter is more than {MOST_DEPTH} levels deep: reduce its nesting")
        if nodes > MOST_NODES:
            raise RequestError(
                f"the filter has more than {MOST_NODES} conditions, counting AND, OR and NOT too: "
                "use fewer, or an IN list"
            )
        match node:
            case And(parts) | Or(parts):
                if len(parts) > MOST_NODES:
                    raise RequestError(
                        f"the filter has more than {MOST_NODES} conditions, counting AND, OR and NOT too: "
                        "use fewer, or an IN list"
                    )
                waiting.extend((part, depth + 1) for part in parts)
            case Not(part):
                waiting.append((part, depth + 1))
            case _:
                literals += _leaf(node)
        if literals > MOST_LITERALS:
            raise RequestError(f"the filter has more than {MOST_LITERALS} literals: use fewer, or filter on the client")


def check_name(name: object, what: str) -> str:
    """Return the name if it is text within the length limit. Otherwise raise RequestError, whose message calls the
    named thing `what`."""
    if not isinstance(name, str) or not 0 < _bytes(name) <= MOST_NAME_BYTES:
        raise RequestError(f"the name of {what} must be text of 1 to {MOST_NAME_BYTES} bytes")
    return name


def _leaf(leaf: Predicate) -> int:
    """Check a leaf and return its number of literals."""
    match leaf:
        case Constant():
            return 0
        case Comparison() | In() | IsNull() | Prefix() | Known():
            _column_name(leaf.column)
        case _:
            raise RequestError(f"a filter cannot contain an object of type {type(leaf).__name__}")
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
            raise RequestError(f"a prefix has more than {MOST_LITERAL_BYTES} bytes; use a shorter prefix")
    return 0


def _column_name(name: object) -> None:
    if not isinstance(name, str) or _bytes(name) > MOST_NAME_BYTES:
        raise RequestError(f"the name of a column must be text of at most {MOST_NAME_BYTES} bytes")


def _literal(literal: Literal) -> None:
    value = literal.value
    if isinstance(value, bytes | str) and _bytes(value) > MOST_LITERAL_BYTES:
        raise RequestError(f"a literal has more than {MOST_LITERAL_BYTES} bytes: filter such values on the client")


def _bytes(value: str | bytes) -> int:
    """Return the length in UTF-8. For text beyond every limit, return an estimate without encoding the text."""
    if isinstance(value, bytes) or len(value) > MOST_LITERAL_BYTES:
        return len(value)
    return len(value.encode("utf-8", "surrogatepass"))
