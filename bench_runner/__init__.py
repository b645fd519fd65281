"""How it is measured: suites become a plan, the plan becomes chains, chains run in fresh workers and leave samples."""
