"""Tests of the formats: each keeps the contract and its own promises."""
