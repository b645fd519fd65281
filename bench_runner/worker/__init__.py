"""One operation in one fresh process: prepare, settle, time the operation, read the probes, verify the result."""
