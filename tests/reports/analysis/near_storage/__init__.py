"""Tests of the throughput model, retrieval rates, and cost."""
