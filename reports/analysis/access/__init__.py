"""What reports say of reading a part of a table: of copies that stay open, and of calls at once."""
