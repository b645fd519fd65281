"""Operations that ask for a share of the blocks of a table."""
