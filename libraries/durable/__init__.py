"""File calls that survive power cuts, for every library of this project that stores files. `calls.py` defines the
calls."""
