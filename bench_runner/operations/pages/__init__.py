"""The pages of memory that a result lies on: read, a byte of each."""
