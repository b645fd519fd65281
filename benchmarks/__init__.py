"""Benchmarks for asv (airspeed velocity). There is one module for each suite that asv runs, and its benchmarks are
generated from bench_runner.suites."""
