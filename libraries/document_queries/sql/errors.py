"""The error of SQL that cannot be answered."""

from __future__ import annotations

from typing import Literal

from libraries.document_queries.errors import QueryError

Reason = Literal["syntax", "statement", "table", "name", "type", "limit", "engine", "library"]


class SQLError(QueryError):
    """SQL that cannot be answered. `reason` is the category of the error."""

    def __init__(self, words: str, reason: Reason) -> None:
        """`words` is the message: what is wrong and what is allowed."""
        super().__init__(words)
        self.reason = reason


def unprocessed(error: Exception) -> SQLError:
    """Convert an exception of sqlglot, or of the translation of its tree, to an SQLError."""
    words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0][:200]
    return SQLError(f"cannot process the SQL: {words}", "syntax")
