"""Tests of bench_runner/operations/tables."""
