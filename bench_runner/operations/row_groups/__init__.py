"""Operations that need a known share of the row groups of a table. They show how much reading pruning avoids."""
