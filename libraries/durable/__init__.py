"""One way of surviving power cuts, for every library here that keeps files: calls.py."""
