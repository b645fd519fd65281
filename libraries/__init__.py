"""Libraries written for this project because no other package offers them.

Each library works without the rest of the project and is benchmarked like the third-party libraries.
"""
