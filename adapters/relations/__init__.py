"""Functions that describe how formats change columns. Such a known change is called a loss.

Each function takes the Arrow column that was stored, and returns the column that a read should give back, or None if
the loss does not affect this column. Adapters pass these functions as `expect` to `adapters.losses.Relation`.
"""
