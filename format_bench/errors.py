"""What the front door refuses by itself. What the rooms behind it refuse has errors of their own.

This module imports nothing: the command line's help must not wait for it.
"""

from __future__ import annotations

from pathlib import Path


class RequestError(ValueError):
    """A request that makes no sense, found before anything was measured.

    The message is for the user: where and what in the first line, what to do in the second. Options are named as the
    command line spells them; the Python keyword is the same word, with `_` for `-`, where it takes the same values.
    """


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal that means the same, after the run had begun: `folder` holds all that was measured."""

    def __init__(self, folder: Path, next_step: str = "") -> None:
        """The usual next step is to measure the rest."""
        resuming = f"the same command with --out {folder} --resume measures the rest"
        super().__init__(f"stopped; all that was measured is in {folder}\n  {next_step or resuming}")
        self.folder = folder
