"""Convert the comparison of a numeric column with a constant. The new constant has the column's kind, and the
comparison is exact.

Generated code then compares integers with integers and doubles with doubles, without rounding.
"""

from __future__ import annotations

import math

from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST

Comparison = tuple[str, int | float] | bool
"""An operator and a constant of the column's kind. A bool means that the comparison has this result for every value but
NaN."""


def for_integers(operator: str, value: int | float) -> Comparison:
    """Return how to compare an integer column with `value`, which must not be NaN."""
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
    """Return how to compare a double column with `value`, which must not be NaN."""
    near = float(value)
    if near == value:
        return operator, near
    if operator in ("=", "!="):
        return operator == "!="
    is_below = operator in ("<", "<=")
    if near > value:
        return ("<", near) if is_below else (">=", near)
    return ("<=", near) if is_below else (">", near)
