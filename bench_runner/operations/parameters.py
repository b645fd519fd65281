"""Declaration of the parameters of operations, with their allowed values and their defaults.

A parameter is a field of the operation's dataclass.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Any
from urllib.parse import quote, unquote

ALL = "all"
"""The value of a `columns` parameter that selects every column of the data."""
_KEY = "parameter"


@dataclass(frozen=True)
class Parameter:
    """The allowed values of one field of an operation. `example` is one of these values."""

    allowed: str
    example: str
    always_spelled: bool
    """Whether the full name of the operation includes the parameter even at its default."""
    words: tuple[str, ...] = ()
    least: int | None = None
    """The smallest whole number allowed, or None if whole numbers are not allowed."""
    share: bool = False
    """Whether a share greater than 0 and at most 1 is allowed."""
    none: bool = False
    """Whether a share of 0 is allowed too."""
    text: bool = False
    """Whether any text is allowed, in the form that `quoted` returns."""

    def parse(self, text: str) -> int | float | str:
        """Return the value for this text. Raises ValueError if the value is not allowed."""
        if text in self.words:
            return text
        if self.text and (plain := unquote(text)).strip():
            return quoted(plain)
        if self.least is not None and text.isdecimal() and int(text) >= self.least:
            return int(text)
        if self.share and (0 < float(text) <= 1 or (self.none and float(text) == 0)):
            return float(text)
        raise ValueError(text)


def count(default: int | str, *words: str, spelled: bool = False) -> Any:
    """Declare a parameter that is a whole number of at least 1 or one of `words`. If `spelled` is true, the full name
    of the operation always includes the parameter."""
    allowed = " or ".join(["a number from 1 on", *words])
    return _field(default, Parameter(allowed, "10", spelled, words, least=1))


def share(default: float, *, none: bool = False) -> Any:
    """Declare a parameter that is a share between 0 and 1. The full name of the operation always includes the
    parameter. If `none` is true, the share may be 0."""
    allowed = "a share from 0 to 1" if none else "a share over 0 and at most 1"
    return _field(default, Parameter(allowed, "0.01", True, share=True, none=none))


def word(default: str, *others: str, spelled: bool = False) -> Any:
    """Declare a parameter that is either `default` or one of `others`. If `spelled` is true, the full name of the
    operation always includes the parameter."""
    words = (default, *others)
    return _field(default, Parameter(" or ".join(words), default, spelled, words))


def free_text(default: str, example: str) -> Any:
    """Declare a parameter that is any text, in the form that `quoted` returns. `example` is for error messages."""
    return _field(quoted(default), Parameter("a text", example, True, text=True))


def quoted(text: str) -> str:
    """Return a text in which every character that would end a parameter, and every control character, is replaced as in
    a URL (`,` is `%2C`). `unquote` is the inverse."""
    return "".join(
        each if each.isprintable() and each not in "%,[]" else quote(each, safe="", errors="replace")
        for each in text.strip()
    )


def of(item: Field[Any]) -> Parameter:
    """Return the parameter that a field of an operation declares."""
    parameter = item.metadata[_KEY]
    assert isinstance(parameter, Parameter)
    return parameter


def _field(default: object, parameter: Parameter) -> Any:
    return field(default=default, metadata={_KEY: parameter})
