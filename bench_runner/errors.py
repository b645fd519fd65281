"""The errors of planning and running that a user sees: what is wrong, what was given, what is allowed, what to do next.

They are printed without a traceback. Nothing heavy is imported here, so that code that prints them need not load the
code that raised them.
"""

from __future__ import annotations

import re

import msgspec

from adapters.errors import UserError

_SOURCE_PLACE = re.compile(r"(?:,? at |, | \()?[^\s,(]*/[^\s,]+\.(?:rs|cc|cpp|cxx|c|h|hpp|go):\d+(?::\d+)?\)?")
"""A place in a library's source, on the machine that compiled it, which is of no use to users of the build."""


class BenchError(UserError):
    """Base of the errors that the runner reports to a user."""


class PlanError(BenchError):
    """The request cannot be met. The text has what was requested, what exists, and what to do next."""


class RunError(BenchError):
    """The run cannot start or continue. The text has the reason and what to do next."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason for having no figures.

    kind: refused (a stated limit, not a failure of the run) | not installed (not a failure either) | mismatch | crash |
    timeout | memory | disk | cache (warm or cold could not be proven) | threads (more than one core under
    threads=1) | error | skipped (the save of its chain failed, or nothing verified it)
    """

    kind: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the run counts it as failed (exit code 1)."""
        return self.kind not in ("refused", "not installed")


class OperationFailed(Exception):
    """One operation of a chain failed, as described by `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def in_one_line(error: BaseException | str) -> str:
    """Return the text of an error in one line, without the place in a library's source; '' if it has none."""
    return " ".join(_SOURCE_PLACE.sub("", str(error)).split())
