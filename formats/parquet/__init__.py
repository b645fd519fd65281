"""Parquet: one file with the writer's row groups and encodings, by the calls of all libraries that support it.

The engines are in the module `engines`. The services of near storage are also modules of this package, and do not need
to load the engines.
"""
