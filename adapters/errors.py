"""The errors that a user sees: each names where, what, got against allowed, and the next step.

They are printed without a traceback, so the message must carry everything; one or two lines.
"""


class AdapterError(Exception):
    """Base of all errors that the adapters' side reports to a user."""


class SpellingError(AdapterError):
    """A name with parameters, such as 'parquet[codec=zstd]', is not well formed."""


class UnknownFormat(AdapterError):
    """No registry row has this name."""


class NotInstalled(AdapterError):
    """The format is known, but a library that it needs is missing. The message holds the command that installs it."""


class RefusedSetting(AdapterError):
    """A setting, or its value, that this engine cannot honour: refused when the plan is made, never ignored."""


class RefusedData(AdapterError):
    """The format, or the call, cannot take this data: a stated reason, not a failure of the run."""
