"""Tests of reports/pdf."""
