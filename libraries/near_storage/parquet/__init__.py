"""Parquet's footer, read by ourselves with every bound checked, and what is kept of it for pruning."""
