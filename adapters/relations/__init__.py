"""Relations for common losses: how a changed column still depends on what was stored.

They are shared by all adapters that declare them. Each is a pure function of an Arrow column, and returns None for a
column that it does not affect.
"""
