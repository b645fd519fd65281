"""What is held of Parquet's footers, codes, compact metadata and pruning."""
