"""The errors of planning and running that a user sees: where, what, got against allowed, and the next step.

They are printed without a traceback. Nothing heavy is imported here, so that whoever tells them need not load what
raised them.
"""


class BenchError(Exception):
    """Base of the errors that the runner reports to a user."""


class PlanError(BenchError):
    """The request cannot be met: what was asked, what exists, and the next step."""


class RunError(BenchError):
    """The run cannot start or go on: what, and the next step."""
