"""Measuring: suites become a plan, the plan becomes chains, chains run in fresh workers and produce samples.

Workers import this package, so nothing heavy is loaded here. Notebooks and programs use `format_bench`.
"""
