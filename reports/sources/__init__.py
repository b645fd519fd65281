"""Compare our figures with published ones, with one module for each source."""
