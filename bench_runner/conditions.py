"""The conditions under which a sample is measured, such as the state of the page cache. Plans set the conditions,
worker processes apply the conditions, and records store them.

To add a condition, write a field of `Conditions` and a row in `CONDITIONS`. Reports, the website and `--list` use this
row. Then add the keyword of `run` (`format_bench.api.request`), its option (`format_bench.options`), the field of
`Request`, the line of `plan.planning` that sets it, and the code that applies it. A test plants such a condition
(tests/bench_runner/test_new_condition.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from bench_runner.data_kinds import kind_of_target
from bench_runner.networks import FRESH, ONE_PROCESS, network_text


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The conditions of a sample. Samples with different conditions are never mixed in one figure.

    `cache`: 'warm', 'cold', or 'cold (guest)', which means cold on a virtual machine.
    `threads`: 'default' or '1'.
    `target`: the type of the data in memory: 'pandas' or 'arrow' for tables, otherwise 'images' or 'documents'.
    `track`: the group of variants to compare: 'plain', 'default', 'equal', 'codecs', 'choice', 'access' or 'spelled'.
    `strings`: the pandas dtype for text, 'str' or 'object'.
    `work_dir`: the label of the working folder, which is 'default' or the path as the user gave it.
    `network`: the network between client and stored copy: '' (none), 'loopback', or a rate such as '1000mbit', which
    means loopback through a proxy that limits the rate.
    `service`: '' (none), 'warm' (it has served requests before) or 'fresh' (started for this sample).
    """

    cache: str = "warm"
    threads: str = "default"
    target: str = "pandas"
    track: str = "plain"
    strings: str = "str"
    work_dir: str = "default"
    network: str = ""
    service: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a target that no kind of data supports."""
        kind_of_target(self.target)


@dataclass(frozen=True)
class Condition:
    """How one field of `Conditions` is requested and shown."""

    name: str
    option: str
    title: str
    """Heading of the control with which users of the website choose a value."""
    text: Callable[[str], str]
    """Function that returns the text of a value in a list of conditions, as in reports."""
    choice: Callable[[str], str] = str
    """Function that returns the text of a value in a list of choices on the website."""
    absent: str = ""
    """Text that `--list` and the website show for the value ''."""
    always_shown: bool = False
    """Whether reports show the condition even if it has its default value."""
    of_tables: bool = False
    """Whether the condition's option applies to tables only."""
    of_raw_io: bool = False
    """Whether raw I/O is measured under each value of the condition, because the condition affects the device or the
    machine."""
    repeated: Callable[[str], str | None] = str
    """Function that takes a stored value of the condition, and returns the value of the option with which a user
    requests this condition again. It returns None if there is no such value."""


_TRACKS = {
    "plain": "plain: no codec",
    "default": "default: the library default",
    "equal": "equal: zstd level 1",
    "codecs": "codecs compared with each other",
}

CONDITIONS = (
    Condition(
        "track",
        "--track",
        "Track",
        "track {}".format,
        lambda track: _TRACKS.get(track, track),
        always_shown=True,
        of_tables=True,
        repeated=lambda track: track if track in ("plain", "default", "equal") else None,
    ),
    Condition(
        "cache",
        "--cache",
        "Page cache",
        "cache {}".format,
        always_shown=True,
        of_raw_io=True,
        repeated=lambda cache: cache.partition(" ")[0],
    ),
    Condition(
        "target",
        "--target",
        "You hold",
        "target {}".format,
        lambda target: kind_of_target(target).targets[target],
        always_shown=True,
        of_tables=True,
    ),
    Condition(
        "threads",
        "--threads",
        "Threads",
        "{} thread".format,
        lambda threads: "the libraries' own" if threads == "default" else f"{threads} thread",
        of_raw_io=True,
    ),
    Condition("strings", "--strings", "Strings", "strings as {}".format, of_tables=True),
    Condition("work_dir", "--work-dir", "Working folder", "in {}".format, of_raw_io=True),
    Condition("network", "--network", "Network", network_text, network_text, absent=ONE_PROCESS, of_raw_io=True),
    Condition(
        "service",
        "--service",
        "Service",
        "{} service".format,
        absent="none",
        repeated=lambda service: service if service == FRESH else None,
    ),
)
"""The conditions, in the order in which reports list them."""


def conditions_text(conditions: Conditions) -> str:
    """Return the conditions in words, such as 'track plain, cache warm, target pandas'. Other conditions appear only if
    their values differ from the defaults."""
    usual = Conditions()
    values = [(each, getattr(conditions, each.name)) for each in CONDITIONS]
    return ", ".join(
        each.text(value) for each, value in values if each.always_shown or value != getattr(usual, each.name)
    )


def same_for_raw_io(one: Conditions, other: Conditions) -> bool:
    """Return whether the same measurement of raw I/O is valid for both conditions."""
    return all(getattr(one, each.name) == getattr(other, each.name) for each in CONDITIONS if each.of_raw_io)
