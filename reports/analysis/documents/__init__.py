"""Sections about document stores that go beyond times: ingestion rates, merges, and ranges by index and by scan."""
