"""Tests of reports.analysis.varied."""
