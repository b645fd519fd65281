"""Operations that need a known share of the row groups of a table, which shows what pruning saves."""
