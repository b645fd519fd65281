"""Tests of the formats: each keeps the contract, and what is its own."""
