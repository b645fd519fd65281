"""The interactive site, and the pages of a publication."""
