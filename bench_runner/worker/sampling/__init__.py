"""Take a sample in one of four ways: one call, a block of calls, concurrent calls, or two passes through all rows."""
