"""Functions that describe common losses, shared by the adapters that have them.

Each function takes the Arrow column that was stored, and returns the column that a read should give back, or None if
the loss does not affect this column. (They are the `expect` of `adapters.losses.Relation`.)
"""
