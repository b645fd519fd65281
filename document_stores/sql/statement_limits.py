"""Limits for the size of SQL statements, and joining of long lists of conditions.

The limits are needed because a part of a plan can occur many times in the SQL."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.document_store import RefusedQuery

MOST_FLAT = 50
"""Maximum number of conditions that are joined without parentheses. Each such condition is a level of nesting, and
SQLite allows 1,000 levels."""

MOST_LETTERS = 20_000
"""Maximum number of characters in one expression. Expressions grow fast with nesting, because each level contains its
operand two or three times."""

MOST_PARAMETERS = 20_000
"""Maximum number of constants in a query. SQLite allows 32,766 parameters."""


def joined(word: str, parts: Iterable[str], none: str) -> str:
    """Return the conditions joined by a word such as AND. If there are many, each half is joined separately, in
    parentheses. If there are no conditions, return `none`."""
    conditions = list(parts)
    if len(conditions) <= MOST_FLAT:
        return f"({word.join(conditions) or none})"
    half = len(conditions) // 2
    return f"({joined(word, conditions[:half], none)}{word}{joined(word, conditions[half:], none)})"


def short(expression: str) -> str:
    """Return the expression unchanged. Raises RefusedQuery if it is too long."""
    if len(expression) > MOST_LETTERS:
        raise RefusedQuery(f"an SQL expression of this query would exceed the limit of {MOST_LETTERS:,} characters")
    return expression
