"""Run `python -m format_bench`, the same program as the installed `format-bench`."""

from format_bench.cli import main

if __name__ == "__main__":
    main()
