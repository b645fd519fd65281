"""Parameter types of the command line: times, names, levels, percentages, weights and needs.

This module converts the text of options to typed values. The API checks whether the values are allowed.
"""

from __future__ import annotations

import re
from pkgutil import resolve_name
from typing import Any

import click


class Duration(click.ParamType):
    """A parameter type for a duration such as '90s', '10m' or '2h'. The value is in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the text, or fail with a message that shows what is allowed."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", str(value).strip())
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is not a time. Write e.g. 90s, 10m or 2h.", param, ctx)
        return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


class Names(click.ParamType):
    """A parameter type for names such as 'zstd,gzip'. The value is a tuple of strings."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Split the text at commas and remove duplicates."""
        if isinstance(value, tuple):
            return value
        return tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip()))


class Levels(click.ParamType):
    """A parameter type for compression levels such as '1,3,9'. The value is a tuple of integers."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Split the text at commas, or fail with a message that shows what is allowed."""
        parts = Names().convert(value, param, ctx)
        if not all(re.fullmatch(r"\d{1,3}", str(part)) for part in parts):
            self.fail(f"{value!r} is not a list of levels. Write e.g. 1,3,9.", param, ctx)
        return tuple(int(part) for part in parts)


class Percent(click.ParamType):
    """A parameter type for a percentage. The value of '10%' is 0.1."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the text, or fail with a message that shows what is allowed."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a percentage. Write e.g. 10%.", param, ctx)
        return float(match[1]) / 100


class Wish(click.ParamType):
    """A parameter type for a preference of `recommend`: weights, needs, or a limit. Another module parses the text."""

    def __init__(self, parser: str, name: str) -> None:
        """`parser` names a function as 'module:name'. This function is imported only when there is a value to parse."""
        self.name = name
        self._parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text, or fail with a message that shows what is allowed."""
        from reports.analysis.recommendation.preferences import PreferenceError

        if not isinstance(value, str):
            return value
        try:
            return resolve_name(self._parser)(value)
        except PreferenceError as error:
            self.fail(str(error), param, ctx)


class Over(click.ParamType):
    """A parameter type for a property of the data to vary: 'nulls=0,0.5' is {'nulls': ('0', '0.5')}."""

    name = "trait"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Split the text at '=' and commas, or fail with a message that shows what to write."""
        if not isinstance(value, str):
            return value
        trait, equals, values = value.partition("=")
        points = Names().convert(values, param, ctx)
        if not trait.strip() or (equals and not points):
            self.fail(f"{value!r} is not a trait. Write e.g. nulls, or nulls=0,0.5,0.9.", param, ctx)
        return {trait.strip(): points}


class Uses(click.ParamType):
    """A parameter type for uses such as 'take 100 rows 1000 times a day'. The value maps the full name of each
    operation to how often per day it is done."""

    name = "uses"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text, or raise a UsageError with the message of the API's error."""
        # These modules import all operations, which is slow. They are imported only when there is a value to parse.
        from format_bench.errors import RequestError
        from format_bench.terminal import with_flags
        from format_bench.uses import parse_uses

        if not isinstance(value, str):
            return value
        try:
            return parse_uses(value)
        except RequestError as error:
            raise click.UsageError(with_flags(error.text), ctx) from None


class ColumnType(click.ParamType):
    """A parameter type for a column and its type: 'zip=text' is ('zip', 'text')."""

    name = "column"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split the text at its last '=', or fail with a message that shows what to write.

        The last '=' is used because names of columns may contain '='.
        """
        if isinstance(value, tuple):
            return value
        name, equals, kind = str(value).rpartition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not NAME=TYPE. Write e.g. zip=text.", param, ctx)
        return name, kind.strip()


COLUMN_TYPE = ColumnType()
DURATION, NAMES, LEVELS, PERCENT, OVER, USES = Duration(), Names(), Levels(), Percent(), Over(), Uses()
