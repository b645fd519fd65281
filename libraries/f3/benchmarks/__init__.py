"""Benchmarks of F3, which print figures. They are run by hand: machines are noisy."""
