"""Measure one operation in one fresh process: prepare the operation, wait until the machine is idle, time the
operation, read memory and I/O counters, and verify the result."""
