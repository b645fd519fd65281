"""Interpret figures of near-storage reading, where a service next to the data filters them: throughput by selectivity,
retrieval rates, and cost."""
