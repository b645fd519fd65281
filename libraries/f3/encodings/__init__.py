"""Encodings: the choice of nodes for the values of an array, and the bytes of each node."""
