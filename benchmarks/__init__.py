"""The asv suite: one module for each of our suites, made from bench_runner.suites; no list of its own."""
