"""The Python API: one module per verb, with typed values, for programs, notebooks and the command line.

    from format_bench import run, recommend, report, compare

Paths are `Path | str`, times are in seconds, sizes in bytes, rates in bytes per second. This package neither parses
command-line text nor prints. A wrong request raises format_bench.errors.RequestError, which is a ValueError. If another
package rejects the request, the error is one from bench_runner.errors, data_generator.errors or adapters.errors, or
bench_runner.results.records.RecordError.
"""
