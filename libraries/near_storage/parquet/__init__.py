"""Read Parquet footers with every bound checked, and keep what pruning needs."""
