"""Filters: a small tree, its JSON, its binding to a schema, and what it means on rows."""
