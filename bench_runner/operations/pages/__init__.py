"""Reading a byte of each memory page that a result occupies."""
