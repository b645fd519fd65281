"""What every format and image storage promises: operations, settings, capabilities, losses, and how
variants are spelled and found.

This room imports no other room, and no library that stores data: `format-bench list` must not pay
for pandas.
"""
