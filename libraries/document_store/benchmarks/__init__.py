"""Benchmarks of the document store, which print figures. They are run by hand: machines are noisy."""
