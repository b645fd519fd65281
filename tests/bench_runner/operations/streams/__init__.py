"""Tests of bench_runner/operations/streams."""
