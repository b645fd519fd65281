"""The commands of the command line, one module for each. They parse options, call format_bench.api, print the result.

Heavy modules are imported inside functions, so that `--help` does not load pandas.
"""
