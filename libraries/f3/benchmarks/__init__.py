"""Benchmarks of F3 that print figures. Run them by hand, because machines are noisy."""
