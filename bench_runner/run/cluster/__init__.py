"""Runs over several machines: each host of a dask.distributed cluster measures a part of the plan."""
