"""The errors of planning and running that a user sees. They state what is wrong, what was given, what is allowed, and
what to do next.

They are printed without a traceback. This module imports nothing that is slow to load, so that code that prints errors
need not load the code that raised them.
"""

from __future__ import annotations

import re

import msgspec

from adapters.errors import UserError

_SOURCE_PLACE = re.compile(r"(?:,? at |, | \()?[^\s,(]*/[^\s,]+\.(?:rs|cc|cpp|cxx|c|h|hpp|go):\d+(?::\d+)?\)?")
"""A position in a library's source code, on the machine that compiled the library. It does not help users of the
build."""


class BenchError(UserError):
    """Base of the errors that the runner reports to a user."""


class PlanError(BenchError):
    """The request cannot be satisfied. The message has what was requested, what exists, and what to do next."""


class RunError(BenchError):
    """The run cannot start or continue. The message has the reason and what to do next."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason why a sample has no figures.

    kind: refused (a stated limit, not a failure of the run) | not installed (not a failure either) | mismatch | crash |
    timeout | memory | disk | cache (the cache state could not be confirmed) | threads (more than one core under
    threads=1) | error | skipped (the save of the chain failed, or no operation verified it)
    """

    kind: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the run counts this as failed (exit code 1)."""
        return self.kind not in ("refused", "not installed")


class OperationFailed(Exception):
    """One operation of a chain failed, as described by `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def in_one_line(error: BaseException | str) -> str:
    """Return the text of an error in one line, without positions in a library's source code; '' if there is no text."""
    return " ".join(_SOURCE_PLACE.sub("", str(error)).split())
