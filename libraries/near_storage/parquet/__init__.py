"""Read Parquet footers, checking every number in them, and keep what is needed to skip row groups."""
