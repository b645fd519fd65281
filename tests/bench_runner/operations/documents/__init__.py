"""Tests of bench_runner/operations/documents."""
