"""What columns mean: nested ones as flat ones, rows and the units that hold them, dictionaries, values."""
