"""The error of SQL that cannot be answered."""

from __future__ import annotations

from typing import Literal

from libraries.document_queries.errors import QueryError

Reason = Literal["syntax", "statement", "table", "name", "type", "limit", "engine", "library"]


class SQLError(QueryError):
    """SQL that cannot be answered. `reason` names the kind of fault."""

    def __init__(self, words: str, reason: Reason) -> None:
        """`words` say what is wrong and what is allowed."""
        super().__init__(words)
        self.reason = reason


def unprocessed(error: Exception) -> SQLError:
    """Return the error for SQL at which sqlglot, or the translation of its tree, failed."""
    words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0][:200]
    return SQLError(f"cannot process the SQL: {words}", "syntax")
