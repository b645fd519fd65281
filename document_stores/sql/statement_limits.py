"""Limits of the size of SQL, and the form of long lists of conditions. Parts of a plan can occur many times in it."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.document_store import RefusedQuery

MOST_FLAT = 50
"""Maximum conditions in one chain: engines need a level for each, and SQLite allows 1,000."""

MOST_LETTERS = 20_000
"""Maximum characters of one expression. Nested functions, and numbers as names in JSON, are written two or three times
at each level."""

MOST_PARAMETERS = 20_000
"""Maximum constants of a query; SQLite allows 32,766."""


def joined(word: str, parts: Iterable[str], none: str) -> str:
    """Join conditions with a word, in nested halves if there are many; return `none` for no conditions."""
    conditions = list(parts)
    if len(conditions) <= MOST_FLAT:
        return f"({word.join(conditions) or none})"
    half = len(conditions) // 2
    return f"({joined(word, conditions[:half], none)}{word}{joined(word, conditions[half:], none)})"


def short(expression: str) -> str:
    """Return the expression. Raises RefusedQuery if it is too long."""
    if len(expression) > MOST_LETTERS:
        raise RefusedQuery(f"an SQL expression exceeds {MOST_LETTERS:,} characters")
    return expression
