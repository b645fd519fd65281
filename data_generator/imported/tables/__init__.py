"""The user's own tables: found, read in a confined process, sampled, checked and stored."""
