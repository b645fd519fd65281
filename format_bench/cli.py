"""The command line. `python main.py`, `python -m format_bench` and `format-bench` are this program.

Data goes to standard output, progress and warnings to standard error. Exit codes (format_bench.terminal): 0 all
measured (not installed and refused are no failures), 1 some cells failed, 2 the request was wrong, 3 a regression was
found, 130 Ctrl-C. This module knows what the verbs are called; what they do stands in format_bench.commands, which import what is heavy when they are called.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from format_bench.commands.compare import compare
from format_bench.commands.doctor import doctor
from format_bench.commands.list import list_
from format_bench.commands.recommend import recommend
from format_bench.commands.report import report
from format_bench.commands.run import run
from format_bench.commands.side_by_side import side_by_side
from format_bench.terminal import INTERRUPTED, WRONG_REQUEST

PROGRAM = "format-bench"
SUITE_FLAGS = ("--tabular", "--compression", "--image")
"""Spelled as in the thesis: `--tabular ...` is exactly `run tabular ...`. Other suites have none."""

EPILOG = """
\b
Examples:
  python main.py --tabular --report             the main job: every format, six tables, PDF
  python main.py --compression --codecs all     what each codec costs, and what it saves
  python main.py run tabular --quick --rows 10000 --formats 'parquet|csv'
  python main.py report results/<run> --pdf     any report again, from stored samples
  python main.py report results/<run> --html site   the interactive site, for a browser
  python main.py --tabular --data FILE          your own table, in every format
  python main.py --image --data FOLDER          your own images, in every storage
  python main.py recommend --data my.csv        which format for my table, and the lines of Python
  python main.py compare results/A results/B    what became slower, and is it more than noise?
  python main.py side-by-side tabular --before old/.venv/bin/python --after new/.venv/bin/python
  python main.py list formats                   what is there, and what is installed
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EPILOG)
def cli() -> None:
    """Format Bench: which storage format, and which call, for my data and my use of it?

    `python main.py --tabular` with any option of `run` is the same as `python main.py run tabular`.
    """


for verb in (run, recommend, report, compare, side_by_side, list_, doctor):
    cli.add_command(verb)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit with its code; no traceback reaches a user for an error of the request."""
    words = expanded(sys.argv[1:] if arguments is None else arguments)
    try:
        # Runs keep the words that asked for them.
        code = cli.main(words, prog_name=PROGRAM, standalone_mode=False, obj=[PROGRAM, *words])
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG_REQUEST)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def expanded(words: list[str]) -> list[str]:
    """`--tabular --report` becomes `run tabular --report`."""
    suites = [word.removeprefix("--") for word in words if word in SUITE_FLAGS]
    if not suites:
        return words
    rest = [word for word in words if word not in SUITE_FLAGS]
    command = rest.pop(0) if rest[:1] in (["run"], ["side-by-side"]) else "run"
    return [command, *suites, *rest]


if __name__ == "__main__":
    main()
