"""Show results: every report is a pure function of stored samples.

This package imports only the results' records and statistics and a few declarations of `bench_runner`. So a report can
be made again on another machine, years later, without any of the libraries that were measured.
"""
