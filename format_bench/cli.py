"""The command line. `python main.py`, `python -m format_bench` and `format-bench` are this program.

Data goes to standard output, progress and warnings to standard error. Exit codes (format_bench.terminal): 0 if
everything was measured ('not installed' and 'refused' do not count as failures), 1 if some measurements failed, 2 if
the request was wrong, 3 if a regression was found, and 130 after Ctrl-C. This module lists the commands and gives hints
for misspelled command names. Each command is a module of format_bench.commands, which is imported when the command is
first used. This module imports heavy modules only when the command is called.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections import UserDict
from collections.abc import Iterable
from typing import Any, NoReturn

import click

from format_bench.terminal import INTERRUPTED, WRONG_REQUEST

PROGRAM = "format-bench"
SUITE_FLAGS = ("--tabular", "--compression", "--image")
"""Flags of the original program, which belonged to a thesis (see the README): `--tabular ...` is the same as `run
tabular ...`. Suites that were added later have no such flag."""

EPILOG = """
\b
Examples:
  format-bench recommend --data my.csv                which format for my table, and how sure
  format-bench recommend --data my.csv --cache cold   ... if I read it about once a day
  format-bench inspect my.csv                         how my file is read
  format-bench ask my.jsonl 'SELECT count(*) FROM docs'   SQL about my JSON Lines
  format-bench convert my.csv my.parquet --as parquet my file in another format, verified
  format-bench run tabular --data my.csv              my own table in every format
  format-bench run tabular --quick --formats 'parquet|csv'   two formats, within three minutes
  format-bench --tabular --report                     every format on six tables; takes hours
  format-bench --compression --codecs all             what each codec costs, and what it saves
  format-bench --image --data FOLDER                  my own images in every storage
  format-bench report results/<run> --html site       an interactive site of a stored run
  format-bench compare results/A results/B            what changed by more than noise
  format-bench side-by-side tabular --before old/.venv/bin/python --after new/.venv/bin/python
                                                      two versions of a library, in turn
  format-bench list formats                           which formats there are
  format-bench doctor                                 is this machine fit for measuring?

'format-bench COMMAND --help' lists all options; those of 'run' and 'recommend' also explain the output.
"""


class Commands(UserDict[str, Any]):
    """Maps each command's name to the command. A value that is still text is the command's module in
    format_bench.commands, and its name there. The module is imported when the command is first used."""

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(self.data[name], str):
            module, _, attribute = self.data[name].partition(":")
            self.data[name] = getattr(importlib.import_module(f"format_bench.commands.{module}"), attribute)
        command: click.Command = self.data[name]
        return command


COMMANDS = Commands(
    {
        "run": "run:run",
        "inspect": "inspect:inspect",
        "ask": "ask:ask",
        "recommend": "recommend:recommend",
        "convert": "convert:convert",
        "report": "report:report",
        "compare": "compare:compare",
        "side-by-side": "side_by_side:side_by_side",
        "list": "list:list_",
        "doctor": "doctor:doctor",
        "serve": "serve:serve",
        "store": "store:store",
    }
)


class Program(click.Group):
    """The click group of all commands. An unknown command gives an error with a hint."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command name as click does, but give hints in errors.

        Raises UsageError for an unknown command. The message has a hint if the word is similar to a command, or is the
        name of a suite.
        """
        name = args[0]
        if self.get_command(ctx, name) is not None or name.startswith("-"):
            return super().resolve_command(ctx, args)
        suite = _near(name, _suites())
        verb = _near(name, self.commands)
        if suite is not None and verb is None:
            raise click.UsageError(f"No such command {name!r}. To measure the suite: 'run {suite}'", ctx)
        guess = f" (did you mean {verb!r}?)" if verb else ""
        raise click.UsageError(f"No such command {name!r}{guess}. Commands: {', '.join(self.commands)}", ctx)


@click.group(
    cls=Program,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(package_name="format-bench", message="%(prog)s %(version)s")
def cli() -> None:
    """Format Bench: find the storage format, and the library call that saves and reads it, for your data and your use.

    `format-bench --SUITE` is short for `format-bench run SUITE`, with the same options: --tabular, --image, ...
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit with its exit code. A wrong request gives a message, not a traceback."""
    words = expanded(sys.argv[1:] if arguments is None else arguments)
    try:
        # The run records these words as its command.
        code = cli.main(words, prog_name=PROGRAM, standalone_mode=False, obj=[PROGRAM, *words])
    except click.exceptions.Abort:
        # click raises this after Ctrl-C. Commands that keep results report Ctrl-C themselves, with the same exit code.
        click.echo("stopped", err=True)
        sys.exit(INTERRUPTED)
    except click.NoSuchOption as error:
        _with_hint(error).show()
        sys.exit(WRONG_REQUEST)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG_REQUEST)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def expanded(words: list[str]) -> list[str]:
    """Return the command-line words with suite flags replaced: `--tabular --report` becomes `run tabular --report`."""
    suites = [word.removeprefix("--") for word in words if word in SUITE_FLAGS]
    if not suites:
        return words
    rest = [word for word in words if word not in SUITE_FLAGS]
    command = rest.pop(0) if rest[:1] in (["run"], ["side-by-side"]) else "run"
    return [command, *suites, *rest]


def _with_hint(error: click.NoSuchOption) -> click.UsageError:
    """Return the error for an unknown option. If the option's name resembles the name of a suite, the error says how to
    run this suite."""
    name = error.option_name.lstrip("-")
    suite = name if name in _suites() else None if error.possibilities else _near(name, _suites())
    if suite is None:
        return error
    if f"--{suite}" in SUITE_FLAGS:
        return click.UsageError(f"No such option {error.option_name}. Did you mean --{suite}?", error.ctx)
    return click.UsageError(f"No such option {error.option_name}. To measure the suite: 'run {suite}'", error.ctx)


def _suites() -> Iterable[str]:
    from bench_runner.suites import SUITES

    return SUITES


def _near(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


if __name__ == "__main__":
    main()
