"""Filters of rows, independent of any file format.

The package represents a filter as a tree, translates pyarrow's expressions to this tree, binds a tree to a schema, and
evaluates a tree on rows. It also prunes: from the bounds of each part of a table, it finds the parts that cannot have
matching rows. Near storage prunes row groups of Parquet with this package, and F3 prunes its encoding units. The
package imports no other package of the project.
"""
