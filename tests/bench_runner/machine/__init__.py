"""Tests of bench_runner/machine."""
