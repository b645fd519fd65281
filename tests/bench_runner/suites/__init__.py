"""Tests of bench_runner/suites."""
