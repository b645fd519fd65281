"""What is done with documents: stored with changes among them, found by key, read in part, asked questions of.

Saving and reading all of them are in bench_runner.operations.whole, as for tables and images.
"""
