"""What reports say of document stores besides times: documents a second, merges, ranges by index and by scan."""
