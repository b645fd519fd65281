"""Tests of reports/analysis."""
