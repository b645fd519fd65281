"""Tests of bench_runner/worker."""
