"""Benchmarks of Format Bench itself: its overhead, and how reliable its figures are.

Run them by hand or with `make selfbench...`. The test suite does not run them, because machines are noisy.
"""
