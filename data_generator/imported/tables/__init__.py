"""The user's own tables. A sample is read in a confined process, checked and stored."""
