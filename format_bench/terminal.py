"""What all commands have in common towards the user: exit codes, the console, and errors told as messages.

Data goes to standard output, progress and warnings to standard error. Heavy modules are imported inside functions:
`--help` must not pay for them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from format_bench.errors import RequestError
from format_bench.thread_variables import make_readable

if TYPE_CHECKING:
    from rich.console import Console

FAILED, WRONG_REQUEST, REGRESSION, INTERRUPTED = 1, 2, 3, 130
"""Exit codes; 0 is: all measured (not installed and refused are no failures)."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
_RESUMED = ("run", "side-by-side")
"""Verbs that go on with what they have measured."""


def console() -> Console:
    """Standard output: as wide as the terminal, 100 columns where there is none."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=100)


def forget_output() -> None:
    """The reader of our output has gone, as `| head` does: nothing is wrong, and the last flush must not say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn the errors that are meant for users into a message and an exit code; anything else is a bug and shows its
    traceback."""
    from adapters.errors import AdapterError
    from bench_runner.errors import BenchError
    from bench_runner.results.records import RecordError
    from data_generator.errors import DataError

    try:
        make_readable()
        yield
    except RequestError as error:
        raise click.UsageError(str(error)) from None
    except (AdapterError, BenchError, DataError, RecordError) as error:
        click.echo(f"error: {error}", err=True)
        raise click.exceptions.Exit(WRONG_REQUEST) from None
    except BrokenPipeError:
        forget_output()
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"error: {where}{error.strerror or error}{_next_step(error)}", err=True)
        raise click.exceptions.Exit(FAILED) from None


def _next_step(error: OSError) -> str:
    """What to do where a disk refuses, as a line of its own; nothing where nobody can know."""
    if error.errno in _FULL:
        context = click.get_current_context(silent=True)
        resumed = context is not None and context.command.name in _RESUMED
        return "\n  free some space and ask again" + ("; a run goes on with --resume" if resumed else "")
    if error.errno in _FORBIDDEN:
        return "\n  name a place where you may write, or allow it there"
    if error.errno in _NO_PLACE:
        return "\n  name a file or folder that is there, or that can be made there"
    return ""
