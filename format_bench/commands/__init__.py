"""The verbs of the command line, one module each: parse options, call format_bench.api, print the result.

Heavy modules are imported inside the commands, so that `--help` does not load pandas.
"""
