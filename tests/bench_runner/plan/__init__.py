"""Tests of bench_runner/plan."""
