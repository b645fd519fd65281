"""The target: what the user holds before a save and wants back from a read."""
