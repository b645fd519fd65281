"""Runs over several machines. Each host (machine) of a dask.distributed cluster measures a part of the plan."""
