"""Measurements at several values of one parameter: the lines, and where the best variant changes."""
