"""Executing a run: rounds and their order, worker processes and their launchers, chains, and resuming a run."""
