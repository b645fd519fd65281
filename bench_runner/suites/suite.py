"""A suite, as data: a question, what is measured to answer it, and the reason for each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from bench_runner.data_kinds import TABLES, DataKind
from bench_runner.suites.rules import Rule

QUICK_TABLE_ROWS, QUICK_IMAGES = 20_000, 5_000
"""Rows of data sets that several suites share, so that these can run together."""


@dataclass(frozen=True, kw_only=True)
class Quick:
    """What one quick round measures of a suite, so that it ends within three minutes on two cores. Empty fields are as
    in the suite. Data sets, rows, operations, networks, threads and formats that the user names are measured anyway."""

    rows: int | None = None
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Variants left out, of those that the suite spells."""
    reason: str = ""
    """Why these, and what is missing."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and what answers it.

    `operations` and `datasets` are always measured, the latter with `rows` rows if given, and those `on_request` only
    if the user names them. `variants` is the rule that chooses variants. `reasons` maps choices to their reasons, which
    `list suites` shows. Everything is measured under each condition of `threads`. A suite with a special case is a
    subclass in its own module.
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
    """What one quick round measures of it."""
    kind: DataKind = TABLES
    """The kind of data."""
    threads: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ("",)
    """Networks between caller and copy, by the names of bench_runner.networks; '' is one process without a network.
    Each is measured for variants with services."""
    target: str = "pandas"
    """Default target."""
    roofline: bool = False
    """Whether the device is probed before and after the counted rounds, so that figures are shares of its limit."""

    operations_over_data: ClassVar[tuple[str, ...]] = ()
    """Replaces `operations` while a trait of the data is varied; empty for the same."""
    fallbacks_once: ClassVar[bool] = True
    """Whether a variant that reads everything for several operations of one name measures only the first, unless the
    user names others: the cost is the same for one row and for a hundred."""
    together: ClassVar[tuple[str, ...]] = ()
    """Names of suites that are measured together with this one, with the same question about other data."""

    @property
    def tracks(self) -> tuple[str, ...]:
        """The tracks of its variants."""
        return self.variants.tracks
