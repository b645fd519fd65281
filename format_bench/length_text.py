"""Texts for the expected duration of a run, and for its progress."""

from __future__ import annotations

from bench_runner.run.known.duration import Length

LARGE_SHARE = 0.15
"""Formats that take at least this share of a run's time are named, but at most MOST_NAMED formats."""
MOST_NAMED = 3


def length_text(length: Length, budget_s: float | None = None) -> str:
    """Return the expected duration as a text.

    For example: 'about 18 to 26 min by earlier runs here: excel 45 %, xml 25 %; without these 5 to 8 min'.

    The text is empty if no duration is known. If most variants have no known duration, the text states this instead of
    a number.
    """
    if not length.by_format:
        return ""
    if len(length.unknown) > len(length.by_format):
        # The sum of the known durations would suggest minutes for a run that takes an hour.
        return f"duration unknown: no earlier measurement of {len(length.unknown)} variants"
    whole = length.middle_s
    named = [name for name, seconds in length.by_format.items() if seconds >= LARGE_SHARE * whole][:MOST_NAMED]
    source = "earlier runs here" if length.here else "the reference run, on other machines"
    told = f"about {_range(length.low_s, length.high_s)} by {source}"
    if named and len(named) < len(length.by_format):
        shares = ", ".join(f"{name} {length.by_format[name] / whole:.0%}" for name in named)
        rest = 1 - sum(length.by_format[name] for name in named) / whole
        them = named[0] if len(named) == 1 else "these"
        told += f": {shares}; without {them} {_range(rest * length.low_s, rest * length.high_s)}"
    if budget_s is not None and budget_s < length.high_s:
        told = f"{clock_text(budget_s)}, the budget (else {told})"
    if length.unknown:
        amount = len(length.unknown)
        told += f"; plus {amount} variant{'' if amount == 1 else 's'} of unknown duration"
    return told


def _range(low_s: float, high_s: float) -> str:
    """Return a range such as '2:10 to 3:20 min', or '50 s to 1:10 min' if the ends have different units."""
    low, high = clock_text(low_s), clock_text(high_s)
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number} to {high}" if high.endswith(unit) else f"{low} to {high}"


def doing_text(stage: str, seconds_left: float | None, step: str) -> str:
    """Return progress such as 'round 3, 2:10 min left, now: parquet on core', or 'data: core' without a time left."""
    if seconds_left is None:
        return f"{stage}: {step}" if step else stage
    return f"{stage}, {clock_text(seconds_left)} left, now: {step}"


def clock_text(seconds: float) -> str:
    """Return a duration as text, such as '45 s', '3:20 min' or '1:05 h'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"
