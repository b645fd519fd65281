"""The verbs of the command line, one module each: it turns words into a call of format_bench.api, and shows what comes.

Heavy modules are imported inside the commands: `--help` must not pay for pandas. Nothing here decides about measuring.
"""
