"""Measure how fast a storage device can be read. Pieces of a given size are read from one file, several at the same
time. The reads bypass the page cache."""
