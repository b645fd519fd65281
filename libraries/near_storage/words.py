"""Format counts and sizes for errors and commands."""

from __future__ import annotations


def number_of(count: int, one: str, many: str = "") -> str:
    """Return `count` with the noun, singular for 1; the default plural is `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size_of(nbytes: int) -> str:
    """Return bytes in a common unit, to three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return number_of(nbytes, "byte")
