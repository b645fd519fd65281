"""Benchmarks of near storage, which print figures. They are run by hand: machines are noisy."""
