"""Filters of rows, independent of any format: their tree, what pyarrow's expressions mean as a tree, binding to a
schema, evaluation on rows, and pruning by the bounds of parts of a table.

Near storage prunes row groups of Parquet with it, and F3 prunes encoding units. The package imports no other package of
the project.
"""
