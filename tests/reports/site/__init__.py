"""Tests of reports/site."""
