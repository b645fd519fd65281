"""The two access paths: rows from a Parquet reader on the node (V1), and exact byte ranges of a file (V2)."""
