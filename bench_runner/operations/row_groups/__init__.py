"""Operations that ask for a known share of the groups in which a table is stored: what pruning can leave out."""
