"""The Python API: one module a verb, with typed values, called by programs, by notebooks and by the command line.

    from format_bench import run, recommend, report, compare

Paths are `Path | str`, times seconds, sizes bytes, rates bytes a second. Nothing here parses words, prints, or knows of
the command line. A wrong request raises a ValueError (format_bench.errors.RequestError), or the error of the room that
refuses it: bench_runner.errors, data_generator.errors, adapters.errors, bench_runner.results.records.RecordError.
"""
