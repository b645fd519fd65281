"""Values of many tuples at once, in numpy and pyarrow: what generated code over columns is made of. Knows no plans."""
