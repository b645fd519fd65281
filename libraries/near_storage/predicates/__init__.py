"""Queries and filters as SQL and as JSON."""
