"""Translating query plans for documents to the SQL of a database engine."""
