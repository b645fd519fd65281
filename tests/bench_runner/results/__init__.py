"""Tests of bench_runner/results."""
