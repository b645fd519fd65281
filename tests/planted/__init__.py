"""Faults that are planted on purpose, to see whether the tests find them."""
