"""Tests of the document store."""
