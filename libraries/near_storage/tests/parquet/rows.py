"""The oracle: what a filter says about one row, in Python, and about all rows of a row group."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

from libraries.near_storage.predicates.tree import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Known,
    Not,
    Or,
    Predicate,
    Prefix,
)

_OPERATORS = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}


def says(predicate: Predicate, row: Mapping[str, object]) -> bool | None:
    """True, false or null, by the words of predicates/tree.py. Python's floats compare as Arrow's do, NaN included."""
    match predicate:
        case And(parts):
            return _every([says(part, row) for part in parts])
        case Or(parts):
            return _not(_every([_not(says(part, row)) for part in parts]))
        case Not(part):
            return _not(says(part, row))
        case Constant(value):
            return value
        case IsNull(column):
            return row[column] is None
    value = row[predicate.column]
    if value is None:
        return None
    match predicate:
        case Known(value=known):
            return known
        case Prefix(text=text):
            return value.startswith(text if isinstance(value, str) else text.encode())
        case In(literals=literals):
            if any(literal.value is not None and value == literal.value for literal in literals):
                return True
            return None if any(literal.value is None for literal in literals) else False
        case Comparison(name, _, literal):
            return None if literal.value is None else _OPERATORS[name](value, literal.value)
    raise AssertionError(predicate)


def said(predicate: Predicate, rows: Iterable[Mapping[str, object]]) -> set[bool | None]:
    """What the filter says of at least one row."""
    return {says(predicate, row) for row in rows}


def _every(values: list[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
