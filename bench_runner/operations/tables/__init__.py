"""What is done with parts of a table: columns, rows by number, rows by a condition, more rows."""
