"""The errors of the API and of the command line. The packages that they call have their own errors.

This module imports only the base class, so that `--help` stays fast.
"""

from __future__ import annotations

from pathlib import Path

from adapters.errors import UserError, replace_parameters


class RequestError(UserError, ValueError):
    """A request that makes no sense, found before anything was measured."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted by Ctrl-C or an equivalent signal. `folder` holds everything that was measured.

    `text` names parameters in backticks, as the text of a UserError does.
    """

    def __init__(self, folder: Path, next_step: str = "") -> None:
        """Set the next step for the user; the default is to measure the rest."""
        resuming = f"To measure the rest, repeat the call with `out={str(folder)!r}` and `resume=True`."
        self.text = f"Stopped. All that was measured is in {folder}\n  {next_step or resuming}"
        super().__init__(replace_parameters(self.text))
        self.folder = folder
