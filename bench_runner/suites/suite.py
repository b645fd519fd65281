"""What a suite is: a question, what is measured to answer it, and the reason for each choice. It is data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from bench_runner.data_kinds import TABLES, DataKind
from bench_runner.suites.rules import Rule

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
    """Of the variants that the suite spells."""
    reason: str = ""
    """Why these, and what is missing."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and what answers it.

    `operations` and `datasets` are measured always, the latter with `rows` rows where it is given; those `on_request`
    when the user names them. `variants` is the rule that says what takes part. `reasons` maps a choice to why it was
    made; `list suites` shows it. All is measured under each condition of `threads`. A suite with a special case is a
    subclass, in its own module.
    """

    name: str
    question: str
    operations: tuple[str, ...]
    datasets: tuple[str, ...]
    on_request: tuple[str, ...]
    variants: Rule
    reasons: Mapping[str, str]
    operations_on_request: tuple[str, ...] = ()
    rows: int | None = None
    quick: Quick = field(default_factory=lambda: Quick())
    """What of it one quick round measures."""
    kind: DataKind = TABLES
    """What is stored."""
    threads: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ("",)
    """What lies between who asks and the copy, by the names of bench_runner.networks: all is measured through each that
    a variant has services for. '' is nothing, one process."""
    target: str = "pandas"
    """What is in hand where nobody says."""
    roofline: bool = False
    """Whether the device is probed before and after the counted rounds, so that figures are shares of what it gives."""

    operations_over_data: ClassVar[tuple[str, ...]] = ()
    """Measured instead of `operations` while a trait of the data is varied; none: the same."""
    fallbacks_once: ClassVar[bool] = True
    """Whether of the operations of one name that a variant has no call for the first alone is measured, unless the user
    names others: what is read whole for one row is read whole for a hundred."""
    together: ClassVar[tuple[str, ...]] = ()
    """Names of suites that are measured as well where this one is asked for: they put its question to other data."""

    @property
    def tracks(self) -> tuple[str, ...]:
        """Those of its variants."""
        return self.variants.tracks
