"""What is done with documents: stored with changes among them, found by key, read in part, asked questions of.

Saving and reading all of them are bench_runner.operations.save and .read, as for tables and images.
"""
