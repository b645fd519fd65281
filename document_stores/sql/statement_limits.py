"""How long SQL may become, and how long lists of conditions are written: what a plan says once may stand there often.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapters.document_store import RefusedQuery

MOST_FLAT = 50
"""Conditions that are joined side by side: engines take a chain for so many levels, and SQLite takes 1,000."""

MOST_LETTERS = 20_000
"""Letters of one expression. A function of a function, or a number as a name in JSON, is written two or three times at
each level."""

MOST_PARAMETERS = 20_000
"""Constants of one query; SQLite takes 32,766."""


def joined(word: str, parts: Iterable[str], none: str) -> str:
    """Conditions with a word between them, in halves of halves where they are many; `none` where there are none."""
    told = list(parts)
    if len(told) <= MOST_FLAT:
        return f"({word.join(told) or none})"
    half = len(told) // 2
    return f"({joined(word, told[:half], none)}{word}{joined(word, told[half:], none)})"


def short(expression: str) -> str:
    """The same. Raises RefusedQuery for one that is too long."""
    if len(expression) > MOST_LETTERS:
        raise RefusedQuery(f"an expression takes more than {MOST_LETTERS:,} letters in SQL")
    return expression
