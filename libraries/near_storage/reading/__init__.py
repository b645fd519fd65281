"""The two ways of reading: by Parquet readers (V1) and by exact byte ranges (V2)."""
