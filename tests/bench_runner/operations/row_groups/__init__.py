"""Tests of bench_runner/operations/row_groups."""
