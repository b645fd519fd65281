"""The errors of the Python API and of the command line.

Packages that the API and the command line call, such as bench_runner, define their own errors. This module imports only
the base class of all errors, so that `--help` stays fast.
"""

from __future__ import annotations

from pathlib import Path

from adapters.errors import UserError, replace_parameters


class RequestError(UserError, ValueError):
    """An invalid request. It is raised before anything is measured."""


class ConversionError(UserError):
    """A table that cannot be converted, or a stored copy that differs from the table."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted by Ctrl-C or an equivalent signal. `folder` holds everything that was measured.

    `text` is the message, with names of parameters in backticks. The command line replaces these names by its flags.
    """

    def __init__(self, folder: Path, next_step: str = "") -> None:
        """`next_step` says what the user can do now. The default explains how to measure the rest."""
        resuming = f"To measure the rest, repeat the call with `out={str(folder)!r}` and `resume=True`."
        self.text = f"Stopped. All that was measured is in {folder}\n  {next_step or resuming}"
        super().__init__(replace_parameters(self.text))
        self.folder = folder
