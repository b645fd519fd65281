"""Tests of bench_runner."""
