"""Columns: convert nested columns to flat ones and back, select rows and units, and handle dictionaries and values."""
