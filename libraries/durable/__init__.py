"""File calls that survive power cuts, for every library here that stores files: calls.py."""
