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

if TYPE_CHECKING:
    from rich.console import Console

FAILED, WRONG_REQUEST, REGRESSION, INTERRUPTED = 1, 2, 3, 130
"""Exit codes; 0 is: all measured (not installed and refused are no failures)."""


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
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "\n  free some space and ask again; a run goes on with --resume" if full else ""
        click.echo(f"error: {where}{error.strerror or error}{advice}", err=True)
        raise click.exceptions.Exit(FAILED) from None
