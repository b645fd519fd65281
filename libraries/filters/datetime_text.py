"""Parse dates and times in ISO 8601, as used in SQL, to exact nanoseconds and days.

Incomplete texts are refused; nothing is guessed.
"""

from __future__ import annotations

import datetime
import re

from libraries.filters.errors import PredicateError

NANOSECONDS = 1_000_000_000

_DATE = r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_OFFSET = r"\s?(?P<offset>Z|[+-]\d{2}(?::?\d{2})?)"
_ONLY_DATE = re.compile(_DATE, re.ASCII)
_ONLY_TIME = re.compile(_TIME, re.ASCII)
_MOMENT = re.compile(rf"{_DATE}(?:[T ]{_TIME}(?:{_OFFSET})?)?", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def days_of(text: str) -> int:
    """Parse `YYYY-MM-DD` to days since 1970-01-01. Raises PredicateError for other texts."""
    found = _ONLY_DATE.fullmatch(text)
    if found is None:
        raise PredicateError(f"{_shown(text)} is not a date: write YYYY-MM-DD, e.g. '2020-12-31'")
    return _days(found, text)


def nanoseconds_of_day(text: str) -> int:
    """Parse `HH:MM[:SS[.fraction]]` to nanoseconds since midnight. Raises PredicateError for other texts."""
    found = _ONLY_TIME.fullmatch(text)
    if found is None:
        raise PredicateError(f"{_shown(text)} is not a time of day: write HH:MM:SS, e.g. '23:59:59.123'")
    return _nanoseconds(found, text)


def nanoseconds_since_1970(text: str) -> tuple[int, bool]:
    """Parse `YYYY-MM-DD[ HH:MM[:SS[.fraction]][+HH:MM]]` to `(nanoseconds, has an offset)`. A date alone means
    midnight.

    With an offset, nanoseconds count from 1970 in UTC. Without an offset, they count from 1970 in local time, whose
    zone is not known. Raises PredicateError for other texts.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise PredicateError(
            f"{_shown(text)} is not a timestamp: write e.g. '2020-12-31 23:59:59.123', or with a time zone "
            "'2020-12-31 23:59:59.123+01:00'; 'Z' means UTC"
        )
    midnight = _days(found, text) * 86_400 * NANOSECONDS
    clock = _nanoseconds(found, text) if found["hour"] is not None else 0
    if found["offset"] is None:
        return midnight + clock, False
    return midnight + clock - _offset(found["offset"], text), True


def _days(found: re.Match[str], text: str) -> int:
    try:
        day = datetime.date(int(found["year"]), int(found["month"]), int(found["day"]))
    except ValueError as error:
        raise PredicateError(f"{_shown(text)} has an invalid calendar date: {error}") from None
    return day.toordinal() - _EPOCH


def _nanoseconds(found: re.Match[str], text: str) -> int:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise PredicateError(f"{_shown(text)} has an invalid time of day: hours end at 23, minutes and seconds at 59")
    fraction = (found["fraction"] or "").ljust(9, "0")
    return (hour * 3_600 + minute * 60 + second) * NANOSECONDS + int(fraction)


def _offset(offset: str, text: str) -> int:
    if offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise PredicateError(f"{_shown(text)} has an invalid zone offset: hours end at 23, minutes at 59")
    return (1 if offset[0] == "+" else -1) * (hours * 3_600 + minutes * 60) * NANOSECONDS


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")
