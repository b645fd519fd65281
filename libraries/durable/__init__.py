"""File calls that survive power cuts, for every library of this project that stores files. They are in calls.py."""
