"""Sections about document stores: ingestion rates, merges, and range queries by index and by scan."""
