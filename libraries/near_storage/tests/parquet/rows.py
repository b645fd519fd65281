"""The oracle in Python: the value of a filter for one row, and for all rows of a row group."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Not, Or, Predicate, Prefix

_OPERATORS = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}


def says(predicate: Predicate, row: Mapping[str, object]) -> bool | None:
    """Return true, false or null, as defined in predicates/tree.py. Python's floats, even NaN, compare like Arrow's."""
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
    """Return the values of the filter that occur among the rows."""
    return {says(predicate, row) for row in rows}


def _every(values: list[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
