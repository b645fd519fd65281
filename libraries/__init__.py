"""Libraries written for this project because no other package offers them.

Each works without the rest of the project and is measured like any other library.
"""
