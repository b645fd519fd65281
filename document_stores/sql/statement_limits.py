"""Limits for the size of SQL statements, and conversion of long lists of conditions.

A part of a plan can occur many times in the SQL."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.document_store import RefusedQuery

MOST_FLAT = 50
"""Maximum number of conditions in one chain. Each condition is a level of nesting; SQLite allows 1,000 levels."""

MOST_LETTERS = 20_000
"""Maximum number of characters in one expression. Expressions grow fast with nesting, because each level writes nested
functions, and numbers that are names in JSON, two or three times."""

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
