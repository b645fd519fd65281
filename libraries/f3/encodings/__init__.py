"""Encodings: choose the nodes that store the values of an array, and write the bytes of each node."""
