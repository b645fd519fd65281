"""Tests of the image storages: each keeps the contract, and what is its own."""
