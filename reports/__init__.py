"""Print the results of runs. Every report is a pure function of stored samples.

From `bench_runner`, this package imports only the records and statistics of results, and a few declarations. A report
can therefore be made again on another machine, years later, without any of the libraries that were measured.
"""
