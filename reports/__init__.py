"""How it is shown: every report is a pure function of stored samples.

This room imports only `bench_runner.results.records` and `bench_runner.results.statistics`: a report can be made again
on another machine, years later, without any of the libraries that were measured.
"""
