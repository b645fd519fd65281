"""Code that all commands share: exit codes, the console, and error messages that name command-line flags.

Data goes to standard output, progress and warnings to standard error. Heavy modules are imported inside functions, so
that `--help` does not load them.
"""

from __future__ import annotations

import ast
import errno
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from adapters.errors import UserError, as_in_python, replace_parameters
from format_bench.errors import RequestError
from format_bench.thread_variables import make_readable

if TYPE_CHECKING:
    from rich.console import Console

FAILED, WRONG_REQUEST, REGRESSION, INTERRUPTED = 1, 2, 3, 130
"""Exit codes other than 0. Code 0 means that everything was measured. Variants that are not installed or are refused do
not count as failures."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
_RESUMED = ("run", "side-by-side")
"""Commands that can continue an earlier run."""


def console() -> Console:
    """Return a console on standard output. It is as wide as the terminal, or 100 columns if there is no terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=100)


def forget_output() -> None:
    """Discard further output after its reader closed the pipe, as `| head` does.

    Otherwise Python would report an error when it flushes standard output at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def with_flags(text: str) -> str:
    """Return the text with a flag in place of each parameter in backticks.

    `work_dirs` becomes --work-dir, and `target='arrow'` becomes --target arrow. Names and flags come from click's
    parameters, first of the current command, then of the other commands.
    """
    context = click.get_current_context(silent=True)
    commands = [] if context is None else [*getattr(context.find_root().command, "commands", {}).values()]
    commands = [*reversed(commands), *([] if context is None else [context.command])]
    known = {parameter.name: parameter for command in commands for parameter in command.params}

    def spell(name: str, value: str | None) -> str:
        if value == "False":
            name, value = f"no_{name}", "True"
        parameter = known.get(name)
        if parameter is None:
            return as_in_python(name, value)
        if isinstance(parameter, click.Argument):
            return parameter.metavar or name.upper()
        flag = max(parameter.opts, key=len)
        return flag if value in (None, "True") else " ".join(f"{flag} {word}" for word in _words(value, parameter))

    return replace_parameters(text, spell)


def _words(value: str, parameter: click.Parameter) -> list[str]:
    """Return the command-line words for a value that is written as a Python literal.

    A repeatable option gets one word for each item of the value.
    """
    try:
        found = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return [value]
    if isinstance(found, dict):
        several = [f"{name}={_joined(each)}" for name, each in found.items()]
    else:
        several = [str(each) for each in found] if isinstance(found, tuple | list) else [str(found)]
    return [shlex.quote(word) for word in (several if parameter.multiple else [",".join(several)])]


def _joined(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn errors that are meant for users into a message and an exit code.

    Any other error is a bug and shows its traceback.
    """
    try:
        make_readable()
        yield
    except RequestError as error:
        raise click.UsageError(with_flags(error.text)) from None
    except UserError as error:
        click.echo(f"error: {with_flags(error.text)}", err=True)
        raise click.exceptions.Exit(WRONG_REQUEST) from None
    except BrokenPipeError:
        forget_output()
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"error: {where}{error.strerror or error}{_next_step(error)}", err=True)
        raise click.exceptions.Exit(FAILED) from None


def _next_step(error: OSError) -> str:
    """Return a second line for the message of an OSError, which says what to do, for example if the disk is full.
    Return '' if the kind of OSError suggests no next step."""
    if error.errno in _FULL:
        context = click.get_current_context(silent=True)
        resumed = context is not None and context.command.name in _RESUMED
        return "\n  Free some space, then repeat the command." + (" --resume continues a run." if resumed else "")
    if error.errno in _FORBIDDEN:
        return "\n  Choose a place that you may write to, or change its permissions."
    if error.errno in _NO_PLACE:
        return "\n  Name a file or folder that exists or can be created."
    return ""
