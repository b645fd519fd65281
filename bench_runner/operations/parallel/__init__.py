"""Saving and reading a table in partitions, by several processes of dask.distributed or by a library's own threads."""
