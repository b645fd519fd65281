"""Format Bench from its checkout: `python main.py ...` is the same program as the installed `format-bench`."""

from bench_runner.cli import main

if __name__ == "__main__":
    main()
