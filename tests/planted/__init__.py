"""Faults that are planted on purpose, to check that the tests find them."""
