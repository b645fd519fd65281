"""The disk that tells what was written from what was synced, for the tests of every library that keeps files."""
