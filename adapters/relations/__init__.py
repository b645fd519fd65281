"""Ready-made relations: how the columns that common calls change still depend on what was stored.

Each is written once for all adapters that declare it, beside others for columns of its kind. Pure functions of Arrow
columns; a function returns None for a column that it does not touch.
"""
