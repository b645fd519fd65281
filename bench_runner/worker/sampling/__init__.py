"""The ways to take a sample: one call, a block of calls, calls at the same time, two epochs."""
