"""The Python API: one module per verb, with typed values, for programs, notebooks and the command line.

    from format_bench import run, recommend, report, compare

Paths are `Path | str`, times are in seconds, sizes in bytes, rates in bytes per second. Nothing here parses words or
prints. A wrong request raises format_bench.errors.RequestError, a ValueError, or the error of the package that refuses
it: bench_runner.errors, data_generator.errors, adapters.errors, bench_runner.results.records.RecordError.
"""
