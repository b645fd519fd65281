"""Define what every format, image storage and document store provides: operations, settings, capabilities, declared
losses, and how variants are spelled and found.

This package imports no other package of the project and no library that stores data, so that `format-bench list` starts
fast.
"""
