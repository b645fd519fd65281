"""Stand-in for torch in tests: the part of DataLoader that the harness uses, with the standard library only."""
