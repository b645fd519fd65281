"""The bytes of a file: its ends, its metadata, its units, and where they come from and go to."""
