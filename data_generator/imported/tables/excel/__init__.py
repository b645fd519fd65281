"""Excel workbooks: which sheet is the table, and what its cells hold beyond their values."""
