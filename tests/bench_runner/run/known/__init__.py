"""Tests of bench_runner/run/known."""
