"""Parquet: one file with the writer's row groups and encodings, by the calls of all libraries that support it.

The engines are in `engines`, so that the services of near storage, which are modules of this package, do not load them.
"""
