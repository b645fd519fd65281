"""Read JSON as a table: find the records of a file, refuse JSON that is not a table, convert values to columns."""
