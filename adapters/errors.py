"""Define the errors that a user sees.

The command line prints these errors without a traceback. The message must therefore say in one or two lines what is
wrong, what was given, what is allowed, and what to do next. Every package may import this module. It imports no other
module of the project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")
_ONE_LINE = 100
"""A problem and its next step are printed on one line if they have fewer characters together than this limit. Otherwise
the next step gets a separate line."""


class UserError(Exception):
    """An error that the user can fix.

    In `text`, parameters are in backticks and in Python's spelling, such as `rows` or `target='arrow'`. `str(error)` is
    the text without these backticks. The command line replaces each parameter by its flag
    (format_bench.terminal.with_flags).

    parameter: the keyword argument that has the wrong value, e.g. 'work_dirs'; None if the error is not about exactly
        one argument.
    given: the wrong value.
    allowed: the allowed values, or a text that describes them.
    next_step: what the user should do.
    """

    def __init__(
        self,
        problem: str = "",
        next_step: str = "",
        *,
        parameter: str | None = None,
        given: object = None,
        allowed: str | Collection[str] = "",
    ) -> None:
        """Create the error. If `problem` is empty, the message is built from `parameter`, `allowed` and `given`."""
        self.problem = problem or f"`{parameter}` must be {_either(allowed)} (got {given!r})."
        self.parameter, self.given, self.allowed, self.next_step = parameter, given, allowed, next_step
        one_line = len(self.problem) + len(next_step) < _ONE_LINE and "\n" not in self.problem + next_step
        super().__init__((" " if one_line else "\n  ").join(filter(None, (self.problem, next_step))))

    @property
    def text(self) -> str:
        """The message, with parameters in backticks."""
        return str(self.args[0])

    def __str__(self) -> str:
        return replace_parameters(self.text)


def as_in_python(name: str, value: str | None) -> str:
    """Return a parameter in the spelling of Python: `name`, or `name=value` if a value is given."""
    return name if value is None else f"{name}={value}"


def replace_parameters(text: str, spell: Callable[[str, str | None], str] = as_in_python) -> str:
    """Replace each parameter in backticks, such as `name` or `name=value`, by the text that `spell(name, value)`
    returns. Without a value, `spell` gets None."""
    return _PARAMETER.sub(lambda found: spell(found[1], found[2]), text)


def _either(allowed: str | Collection[str]) -> str:
    """Return allowed values as one text: a given text unchanged, and a list of values as "'a', 'b' or 'c'"."""
    if isinstance(allowed, str):
        return allowed
    *most, last = map(repr, allowed)
    return f"{', '.join(most)} or {last}" if most else last


class AdapterError(UserError):
    """Base class of all errors about formats, settings and data."""


class SpellingError(AdapterError):
    """A name with parameters, such as 'parquet[codec=zstd]', is not well formed."""


class UnknownFormat(AdapterError):
    """No format, image storage or document store has this name."""


class NotInstalled(AdapterError):
    """The format is known, but a required library is missing. The message has the command that installs the library."""


class RefusedSetting(AdapterError):
    """The engine does not support a setting, or does not support this value. An unsupported setting always raises this
    error, before anything is measured."""


class RefusedData(AdapterError):
    """The format, or its library, cannot store this data. Reports show the reason; the run does not fail."""
