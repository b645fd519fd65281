"""Near storage as an engine of Parquet: the package of this project that reads files where they lie."""

CATALOG, NODE = "catalog", "node-1"
"""The folders of a stored copy, and the names of what serves them."""
