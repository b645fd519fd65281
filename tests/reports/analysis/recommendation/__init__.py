"""Tests of reports/analysis/recommendation."""
