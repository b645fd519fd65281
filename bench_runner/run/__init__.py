"""Execute a run: its rounds and their order, the worker processes, the operations of each variant, and the resumption
of an interrupted run."""
