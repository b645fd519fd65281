"""Queries as SQL: plans are translated for an engine, given the expressions by which it distinguishes values."""
