"""The parameters of operations: how they are spelled, what they may be, and what they are where nobody says.

A parameter is a field of the operation's dataclass.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Any

ALL = "all"
"""As a number of columns: every column of the data."""
_KEY = "parameter"


@dataclass(frozen=True)
class Parameter:
    """What a field of an operation may be. `example` is one that is allowed."""

    allowed: str
    example: str
    always_spelled: bool
    """Whether names of the operation say it even where it is the default."""
    words: tuple[str, ...] = ()
    least: int | None = None
    """Where whole numbers are allowed."""
    share: bool = False
    """Whether a share of all is allowed, over 0 and at most 1,"""
    none: bool = False
    """and 0 as well."""

    def parse(self, text: str) -> int | float | str:
        """The value that a text spells. Raises ValueError."""
        if text in self.words:
            return text
        if self.least is not None and text.isdecimal() and int(text) >= self.least:
            return int(text)
        if self.share and (0 < float(text) <= 1 or (self.none and float(text) == 0)):
            return float(text)
        raise ValueError(text)


def count(default: int | str, *words: str, spelled: bool = False) -> Any:
    """A whole number from 1 on, or one of some words."""
    allowed = " or ".join(["a number from 1 on", *words])
    return _field(default, Parameter(allowed, "10", spelled, words, least=1))


def share(default: float, *, none: bool = False) -> Any:
    """A share of all, which is always spelled; with `none` it may be 0."""
    allowed = "a share from 0 to 1" if none else "a share over 0 and at most 1"
    return _field(default, Parameter(allowed, "0.01", True, share=True, none=none))


def word(default: str, *others: str, spelled: bool = False) -> Any:
    """One of some words."""
    words = (default, *others)
    return _field(default, Parameter(" or ".join(words), default, spelled, words))


def of(item: Field[Any]) -> Parameter:
    """What was said of a field of an operation."""
    parameter = item.metadata[_KEY]
    assert isinstance(parameter, Parameter)
    return parameter


def _field(default: object, parameter: Parameter) -> Any:
    return field(default=default, metadata={_KEY: parameter})
