"""The errors of planning and running that a user sees: where, what, got against allowed, and the next step.

They are printed without a traceback. Nothing heavy is imported here, so that whoever tells them need not load what
raised them.
"""

from __future__ import annotations

import re

import msgspec

from adapters.errors import UserError

_SOURCE_PLACE = re.compile(r"(?:,? at |, | \()?[^\s,(]*/[^\s,]+\.(?:rs|cc|cpp|cxx|c|h|hpp|go):\d+(?::\d+)?\)?")
"""Where in its own source, on the machine that compiled it, a library raised: of no use to whoever has a build."""


class BenchError(UserError):
    """Base of the errors that the runner reports to a user."""


class PlanError(BenchError):
    """The request cannot be met: what was asked, what exists, and the next step."""


class RunError(BenchError):
    """The run cannot start or go on: what, and the next step."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why there are no figures.

    kind: refused (a stated limit: no failure of the run) | not installed (likewise) | mismatch | crash |
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
    """One operation of a chain went wrong: `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def in_one_line(error: BaseException | str) -> str:
    """What an error says, in one line and without the place in a library's source; empty where it says nothing."""
    return " ".join(_SOURCE_PLACE.sub("", str(error)).split())
