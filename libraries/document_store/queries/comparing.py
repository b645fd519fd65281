"""Convert the comparison of a numeric column with a constant to an exact comparison with a constant of its own kind.

Generated code then compares integers with integers and doubles with doubles, without rounding.
"""

from __future__ import annotations

import math

from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST

Comparison = tuple[str, int | float] | bool
"""An operator and a constant of the column's kind. A bool is the result for every value except NaN."""


def for_integers(operator: str, value: int | float) -> Comparison:
    """Return how to compare integers with `value`, which is not NaN."""
    if isinstance(value, int):
        return operator, value
    if math.isfinite(value) and value.is_integer() and INTEGER_LOWEST <= int(value) <= INTEGER_HIGHEST:
        return operator, int(value)
    if operator in ("=", "!="):
        return operator == "!="
    if value < INTEGER_LOWEST or value > INTEGER_HIGHEST:
        return (value > 0) == (operator in ("<", "<="))
    return ("<=", math.floor(value)) if operator in ("<", "<=") else (">=", math.ceil(value))


def for_doubles(operator: str, value: int | float) -> Comparison:
    """Return how to compare doubles with `value`, which is not NaN."""
    near = float(value)
    if near == value:
        return operator, near
    if operator in ("=", "!="):
        return operator == "!="
    is_below = operator in ("<", "<=")
    if near > value:
        return ("<", near) if is_below else (">=", near)
    return ("<=", near) if is_below else (">", near)
