"""One operation in one fresh process: prepare, settle, clock, probes, verify."""
