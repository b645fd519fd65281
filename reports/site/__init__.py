"""The interactive site, and its publication."""
