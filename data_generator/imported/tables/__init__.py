"""The user's own tables: found, read in a process that is confined, sampled, checked and kept."""
