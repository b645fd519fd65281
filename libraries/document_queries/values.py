"""Limits of values in documents and plans, and how error messages show values."""

from __future__ import annotations

MAX_DEPTH = 64
"""Maximum number of steps (fields and items) from a document to a value."""
INTEGER_LOWEST, INTEGER_HIGHEST = -(1 << 63), (1 << 63) - 1

MOST_DIGITS = 40
"""Error messages describe longer integers by their size, because Python refuses to print thousands of digits."""


def shown(value: object) -> str:
    """Return a value as error messages show it."""
    if type(value) is int and value.bit_length() > 4 * MOST_DIGITS:
        return f"an integer of {value.bit_length():,} bits"
    return repr(value)
