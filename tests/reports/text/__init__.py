"""Tests of reports/text."""
