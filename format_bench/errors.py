"""The errors of the API and of the command line; the packages behind them have their own errors.

Imports nothing but the base class: the command line's help must not wait for it.
"""

from __future__ import annotations

from pathlib import Path

from adapters.errors import UserError, replace_parameters


class RequestError(UserError, ValueError):
    """A request that makes no sense, found before anything was measured."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal that means the same, after the run had begun: `folder` holds all that was measured.

    `text` names parameters in backticks, as the text of a UserError does.
    """

    def __init__(self, folder: Path, next_step: str = "") -> None:
        """The usual next step is to measure the rest."""
        resuming = f"To measure the rest, repeat the call with `out={str(folder)!r}` and `resume=True`."
        self.text = f"Stopped. All that was measured is in {folder}\n  {next_step or resuming}"
        super().__init__(replace_parameters(self.text))
        self.folder = folder
