"""JSON as a table: the records of a file, the shapes that are not records, and columns of the values in them."""
