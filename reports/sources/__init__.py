"""Comparisons of our figures with published ones, one module for each source."""
