"""Executing a run: rounds and their order, workers and launchers, chains, resuming."""
