"""Columns: nested to flat and back, selection of rows and units, dictionaries, values."""
