"""Errors that a user sees: what is wrong, what was given, what is allowed, and what to do next.

They are printed without a traceback, so the message must carry everything in one or two lines. Every package may import
this module, and it imports nothing of the project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")
_ONE_LINE = 100
"""Up to this length the next step follows in the same line."""


class UserError(Exception):
    """An error that is the user's to solve.

    `text` names parameters in backticks as Python spells them: `rows`, `target='arrow'`. `str(error)` is the text
    without these backticks. The command line shows each of them as its flag instead (format_bench.terminal.with_flags).

    parameter: the keyword that has the wrong value, e.g. 'work_dirs'; None where it is not one keyword.
    given: its value. allowed: what may be given, as text or as the possible values. next_step: what to do.
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
        """Without a `problem`, the text is made of `parameter`, `allowed` and `given`."""
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
    """Return `name` or `name=value`."""
    return name if value is None else f"{name}={value}"


def replace_parameters(text: str, spell: Callable[[str, str | None], str] = as_in_python) -> str:
    """Replace each `name` or `name=value` in backticks by what `spell` returns for the name and the value."""
    return _PARAMETER.sub(lambda found: spell(found[1], found[2]), text)


def _either(allowed: str | Collection[str]) -> str:
    """Return "'a', 'b' or 'c'"; a text as it is."""
    if isinstance(allowed, str):
        return allowed
    *most, last = map(repr, allowed)
    return f"{', '.join(most)} or {last}" if most else last


class AdapterError(UserError):
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
