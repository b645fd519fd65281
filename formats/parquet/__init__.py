"""Parquet: one file, the writer's own row groups and encodings, by the calls of all libraries that have both.

The engines are in `engines`, so that the services of near storage, which are modules of this package, do not load them.
"""
