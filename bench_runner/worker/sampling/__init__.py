"""The ways of taking a sample: one call, a block of calls, concurrent calls, or two passes through all rows."""
