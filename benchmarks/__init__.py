"""The asv suite: one module for each of our suites, generated from bench_runner.suites."""
