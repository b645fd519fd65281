"""JSON as a table: the records of a file, shapes that are not records, and columns of their values."""
