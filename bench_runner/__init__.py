"""Measure formats. Suites, which declare what to measure, are converted into a plan of chains. A chain is one save
followed by the operations that read the saved copy. Each operation is executed in a fresh worker process and yields a
sample.

Workers import this package, so it imports nothing that is slow to load. Notebooks and programs use `format_bench`
instead.
"""
