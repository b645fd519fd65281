"""Tests of Parquet footers, codes, compact metadata and pruning."""
