"""Secondary indexes: (value, key) in order, maintained by upserts and deletions (paper, section 4.6)."""
