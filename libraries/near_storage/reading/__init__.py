"""The two ways of reading: by a Parquet reader (V1) and by exact byte ranges (V2)."""
