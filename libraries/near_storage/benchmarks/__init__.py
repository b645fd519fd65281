"""Benchmarks of near storage alone, which print figures. They are run by hand: machines are noisy."""
