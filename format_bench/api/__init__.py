"""The Python API: functions with typed parameters, for programs, notebooks and the command line.

    from format_bench import run, recommend, report, compare

Paths are `Path | str`, times are in seconds, sizes in bytes, rates in bytes per second. This package does not
print. A wrong request raises format_bench.errors.RequestError, which is a ValueError. Packages
that this one calls may reject the request with their own errors, which are defined in bench_runner.errors,
data_generator.errors and adapters.errors, or with bench_runner.results.records.RecordError.
"""
