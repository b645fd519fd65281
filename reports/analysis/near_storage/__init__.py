"""Interpret figures of near-storage reading, in which a service next to the data filters the data: throughput by
selectivity, retrieval rates, and cost."""
