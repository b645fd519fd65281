"""What a suite is: a question, what is measured to answer it, and the reason for each choice. It is data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_runner.data_kinds import TABLES, DataKind

CODECS = "codecs"
"""The track on which codecs are set against each other: never mixed with plain, default or equal (rule 10)."""


CHOICE = "choice"
"""The track on which everything is set against everything: whoever chooses for their own data chooses the codec too."""


ACCESS = "access"
"""The track on which formats are set against each other by what is read of them, each with the settings that decide
that."""


QUICK_TABLE_ROWS, QUICK_IMAGES = 20_000, 5_000
"""Of data sets that several suites have, so that these can run together."""


@dataclass(frozen=True, kw_only=True)
class Quick:
    """What one quick round measures of a suite, so that it ends within three minutes on two cores.

    What is empty is as in the suite. What the user names is measured whatever is said here: data sets, rows,
    operations, networks, threads and formats.
    """

    rows: int | None = None
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Of the suite's `variants`."""
    reason: str = ""
    """Why these, and what is missing."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and what answers it.

    `operations` and `datasets` are measured always, the latter with `rows` rows where it is given; those `on_request`
    when the user names them. `tracks` says with which settings every format takes part; with `codecs`, the track is
    'codecs', and every format that has one of them takes part with each of them and with none; with `variants`, those
    take part, spelled in full, and every format that none of them is of with the settings of its track plain. A format
    that does not take part is in `left_out`, with why. `reasons` maps a choice to why it was made; `list suites` shows
    both. Of image storages only those in `formats` take part unless others are asked for, and of document stores those
    that `variants` spell, or else all. All is measured under each condition of `threads`.
    """

    name: str
    question: str
    operations: tuple[str, ...]
    datasets: tuple[str, ...]
    on_request: tuple[str, ...]
    tracks: tuple[str, ...]
    reasons: Mapping[str, str]
    operations_on_request: tuple[str, ...] = ()
    operations_over_data: tuple[str, ...] = ()
    """Measured instead of `operations` while a trait of the data is varied; none: the same."""
    rows: int | None = None
    quick: Quick = field(default_factory=lambda: Quick())
    """What of it one quick round measures."""
    codecs: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    of_whole_data: Mapping[str, str] = field(default_factory=dict)
    """Settings that show nothing on fewer rows than a data set has by itself, with why: there their variants are left
    out, unless the user spells the setting."""
    settings_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Settings that change certain operations alone, by their names: variants that spell such a setting are measured
    and ranked in no other, unless the user spells it."""
    fewest_engines: int = 1
    """A format that `variants` do not name takes part with each of its engines when it has so many; else it is left
    out, without being named."""
    kind: DataKind = TABLES
    """What is stored."""
    threads: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ("",)
    """What lies between who asks and the copy, by the names of bench_runner.networks: all is measured through each that
    a variant has services for. '' is nothing, one process."""
    one_process: tuple[str, ...] = ()
    """Settings that show in one process what they are for: their variants are measured through networks where the user
    names these."""
    target: str = "pandas"
    """What is in hand where nobody says."""
    roofline: bool = False
    """Whether the device is probed before and after the counted rounds, so that figures are shares of what it gives."""
    fallbacks_once: bool = False
    """Of the operations of one name that a variant has no call for, the first alone is measured of it, unless the user
    names others."""
    beside: bool = True
    """Whether the settings that storages name beside their plain ones take part."""
    together: tuple[str, ...] = ()
    """Names of suites that are measured as well where this one is asked for: they put its question to other data."""
