"""Operations that need a known share of the row groups of a table. They show how much reading is avoided by pruning,
that is by skipping row groups whose statistics rule out a match."""
