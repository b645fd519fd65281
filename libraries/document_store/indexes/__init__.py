"""Secondary indexes: sorted (value, key) entries that upserts and deletions maintain (paper, section 4.6)."""
