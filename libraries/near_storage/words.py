"""Numbers of things as errors and commands name them."""

from __future__ import annotations


def number_of(count: int, one: str, many: str = "") -> str:
    """`count` with the noun in the singular for 1; the plural is `one` with an s if nothing else is said."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size_of(nbytes: int) -> str:
    """Bytes in the unit that people use, to three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return number_of(nbytes, "byte")
