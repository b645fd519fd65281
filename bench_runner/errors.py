"""The errors of planning and running that a user sees. A message says what is wrong, what was given, what is allowed,
and what to do next.

These errors are printed without a traceback. This module imports nothing that is slow to load, so that code that prints
errors need not import the code that raises them.
"""

from __future__ import annotations

import re

import msgspec

from adapters.errors import UserError

_SOURCE_PLACE = re.compile(r"(?:,? at |, | \()?[^\s,(]*/[^\s,]+\.(?:rs|cc|cpp|cxx|c|h|hpp|go):\d+(?::\d+)?\)?")
"""Matches a position in a library's source code, such as ' at src/file.rs:12'. Such positions do not help users of the
compiled library."""


class BenchError(UserError):
    """Base of the errors that the runner reports to a user."""


class PlanError(BenchError):
    """The request cannot be satisfied. The message says what was requested, what is available, and what to do next."""


class RunError(BenchError):
    """The run cannot start or continue. The message gives the reason and says what to do next."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason why a sample has no figures.

    `kind` is 'refused' (a known limit of the format), 'not installed', 'mismatch' (wrong data), 'crash', 'timeout',
    'memory', 'disk', 'cache' (the page cache was not in the requested state), 'threads' (more than one core was used
    under threads=1), 'error', or 'skipped' (the save failed or could not be verified). The kinds 'refused' and 'not
    installed' do not count as failures of the run.
    """

    kind: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the run ends with exit code 1 because of this reason."""
        return self.kind not in ("refused", "not installed")


class OperationFailed(Exception):
    """One operation of a chain failed, as described by `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def in_one_line(error: BaseException | str) -> str:
    """Return the text of an error in one line, without positions in a library's source code; '' if there is no text."""
    return " ".join(_SOURCE_PLACE.sub("", str(error)).split())
