"""The ways of taking a sample: one call, a block of calls, concurrent calls, two epochs."""
