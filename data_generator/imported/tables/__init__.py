"""The user's own tables. A confined process reads a sample. The sample is then checked and stored."""
