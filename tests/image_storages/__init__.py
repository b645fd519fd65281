"""Tests of the image storages: the contract, and the specifics of each."""
