"""The error of the language: what cannot be asked, and why."""

from __future__ import annotations


class QueryError(Exception):
    """A plan that means nothing, or that a store or a way of execution cannot answer."""
