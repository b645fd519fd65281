"""The exception for plans that cannot be answered, with the reason."""

from __future__ import annotations


class QueryError(Exception):
    """A plan is invalid, or a store or a way of execution cannot answer it."""
