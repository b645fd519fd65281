"""Measuring: suites become a plan, the plan contains chains, and chains run in fresh workers that produce samples.

Workers import this package, so it loads nothing that is slow to import. Notebooks and programs use `format_bench`.
"""
