"""How it is measured: suites become a plan, the plan becomes chains, chains run in fresh workers and leave samples.

Workers import this package: nothing heavy is loaded here. For notebooks and programs there is `format_bench`.
"""
