"""Limits of the values that documents hold and plans name, and how errors name a value."""

from __future__ import annotations

MAX_DEPTH = 64
"""A value lies at most this many steps (fields and items) below its document."""
INTEGER_LOWEST, INTEGER_HIGHEST = -(1 << 63), (1 << 63) - 1

MOST_DIGITS = 40
"""An integer of more is named by its size in an error: Python refuses to spell thousands of digits."""


def shown(value: object) -> str:
    """Return a value as errors name it."""
    if type(value) is int and value.bit_length() > 4 * MOST_DIGITS:
        return f"an integer of {value.bit_length():,} bits"
    return repr(value)
