"""Translate query plans to the SQL of an engine."""
