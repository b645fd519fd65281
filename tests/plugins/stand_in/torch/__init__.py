"""Stands in for torch in tests: of its DataLoader what the harness uses, by the standard library."""
