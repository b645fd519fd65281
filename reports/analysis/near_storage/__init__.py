"""Interpret figures of near-storage reading: throughput by selectivity, retrieval rates, and cost."""
