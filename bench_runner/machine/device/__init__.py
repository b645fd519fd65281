"""Measure how fast a storage device can be read: reads of a given size from one file, several at the same time,
bypassing the page cache."""
