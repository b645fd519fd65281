"""Operations on parts of a table: columns, rows by number, rows by a condition, appended rows."""
