"""Encodings: choose how to store the values of an array, and write the bytes. A payload consists of nested nodes, each
with one encoding."""
