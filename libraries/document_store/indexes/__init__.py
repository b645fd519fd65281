"""Secondary indexes: (value, key) in order, kept right by whoever upserts and deletes (paper, section 4.6)."""
